// The work that the quickstart profiles: real libraries on files that every machine has. Nothing
// here knows of the profiler.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using Deadline = std::chrono::steady_clock::time_point;

struct InputFile {
  std::string path;
  std::string bytes;
};

// Text files of the machine (package lists, headers, configuration), at most `max_bytes` in all.
std::vector<InputFile> ReadTextFiles(std::size_t max_bytes);

// The program itself and the libraries that it has mapped, at most `max_bytes` in all.
std::vector<InputFile> ReadMappedFiles(std::size_t max_bytes);

// One finished round of a worker.
struct Round {
  std::string worker;
  std::int64_t bytes = 0;
};

// Hands rounds from the workers to the thread that waits for them.
class RoundQueue {
 public:
  void Post(Round round);
  // The next round, or nothing when `until` passes first.
  std::optional<Round> WaitUntil(Deadline until);

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Round> rounds_;
};

// Each repeats its work until the deadline and says in one line what it did.

// SQLite, in memory: inserts the files' lines, indexes them, joins and aggregates.
std::string RunDatabase(const std::vector<InputFile>& files, Deadline deadline, RoundQueue& rounds);
// zlib: deflates the files in several levels, inflates them again and compares.
std::string RunCompression(const std::vector<InputFile>& files, Deadline deadline,
                           RoundQueue& rounds);
// Abseil: counts the words of the files in a flat_hash_map.
std::string RunWordCount(const std::vector<InputFile>& files, Deadline deadline,
                         RoundQueue& rounds);
// Waits for the others' rounds and adds them up: almost no CPU time, all of the wall time.
std::string RunBookkeeping(Deadline deadline, RoundQueue& rounds);
