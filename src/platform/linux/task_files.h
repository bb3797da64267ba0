// The threads of a process, as its files list them: "/proc/self/task", "/proc/PID/task".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strobe::internal {

// More threads than this are not listed.
inline constexpr std::size_t kMaxListedThreads = 10'000;

// Empty if the files cannot be read.
std::vector<std::uint64_t> ThreadsIn(const std::string& task_directory);
// True if one of the threads runs, or waits for nothing but a CPU. False for a process that is
// stopped, waits, or cannot be read.
bool IsAnyRunnable(const std::string& task_directory);
std::string ThreadNameIn(const std::string& task_directory, std::uint64_t thread_id);

}  // namespace strobe::internal
