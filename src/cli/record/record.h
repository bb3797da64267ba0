// record: what the arguments of `strobe record` say, and the two ways of recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recording_output.h"

namespace strobe::internal {

struct RecordOptions {
  std::vector<std::uint32_t> processes;  // that run already
  std::vector<std::string> command;      // or one to run: the program and its arguments
  std::optional<double> hz;              // samples per second of CPU time, if given
  std::vector<std::string> debug_directories;
  OutputOptions output;
  // Of a command under a preloaded library.
  std::optional<double> wall_hz;  // samples per second of each thread, if given
  bool allocations = false;
  bool uses_worker = false;  // a process beside the program drains its samples
  // Of perf events.
  bool uses_perf = false;             // of a command; processes always need it
  std::string events = "task-clock";  // names, with commas between them
  std::uint64_t count = 1;            // events of a kind without a rate for one sample
  double duration_s = 0;              // 0: until the end
  std::size_t stack_bytes = 8192;     // copied of each stack
  std::size_t ring_kib = 4096;        // of each CPU
};

// Both return the status that this process shall end with: that of the command; 126 or 127, as of
// a shell, if it cannot be run. They end this process by the signal that has ended the command.

// Runs the command under a preloaded library. Linux only.
int RecordPreloaded(const RecordOptions& options, RecordingOutput& output);
// Records by perf events. Linux on x86-64 only.
int RecordPerf(const RecordOptions& options, RecordingOutput& output);

}  // namespace strobe::internal
