// record: what the arguments of `strobe record` say, and the ways of recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recording_output.h"

namespace strobe::internal {

// What takes the samples.
enum class RecordingMode : std::uint8_t {
  kChosen,     // of a command: a preloaded library, or perf events if it cannot be preloaded
  kInProcess,  // a preloaded library, and threads of the program
  kWorker,     // a preloaded library, and a process beside the program
  kPerf,       // perf events of the kernel
};

struct RecordOptions {
  RecordingMode mode = RecordingMode::kChosen;
  std::vector<std::uint32_t> processes;  // that run already
  bool has_children = true;              // and what they have started before
  std::vector<std::uint32_t> threads;    // or threads that run already
  bool is_machine = false;           // or all that runs; until the command ends, if there is one
  std::string cgroup;                // of all that runs, what is in this control group
  std::vector<std::string> command;  // or one to run: the program and its arguments
  std::optional<double> hz;          // samples per second of CPU time, if given
  std::vector<std::string> debug_directories;
  OutputOptions output;
  std::optional<double> every_s;  // a profile for each so many seconds, if given
  double duration_s = 0;          // 0: until the end
  bool until_parent = false;      // of the program alone, and not of all that it starts
  // Of a preloaded library.
  std::optional<double> wall_hz;  // samples per second of each thread, if given
  bool allocations = false;
  bool locks = false;       // waits for locks and conditions
  bool exceptions = false;  // what is thrown
  // Of perf events.
  std::string events = "task-clock";  // names, with commas between them
  std::uint64_t count = 1;            // events of a kind without a rate for one sample
  std::size_t stack_bytes = 8192;     // copied of each stack
  std::size_t ring_kib = 4096;        // of each CPU
};

// The time after which a profile is delivered; 0 if there is one at the end. Servers want them
// while the program runs, unless one file is asked for, too.
double PeriodS(const RecordOptions& options);

// They return the status that this process shall end with: that of the command; 126 or 127, as of
// a shell, if it cannot be run. They end this process by the signal that has ended the command.

// Runs the command as it is. Linux only.
int RunUnrecorded(const RecordOptions& options, RecordingOutput& output);
// Runs the command under a preloaded library. Linux only.
int RecordPreloaded(const RecordOptions& options, RecordingOutput& output);
// Records by perf events. Linux on x86-64 only.
int RecordPerf(const RecordOptions& options, RecordingOutput& output);

}  // namespace strobe::internal
