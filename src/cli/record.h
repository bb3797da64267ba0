// record: what the arguments of `strobe record` say, and what it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "command.h"
#include "loaded_profile.h"
#include "strobe/symbolize/symbol_search.h"
#include "terminal.h"

namespace CLI {
class App;
}

namespace strobe::internal {

struct RecordOptions {
  std::vector<std::uint32_t> processes;  // that run already
  std::vector<std::string> command;      // or one to run: the program and its arguments
  bool has_mark = false;                 // "--" stood before `command`, or in it
  std::optional<double> hz;              // samples per second of CPU time, if given
  // Of a command under a preloaded library.
  std::optional<double> wall_hz;  // samples per second of each thread, if given
  bool allocations = false;
  bool shows_top = true;
  // Of perf events.
  bool uses_perf = false;             // of a command; processes always need it
  std::string events = "task-clock";  // names, with commas between them
  std::uint64_t count = 1;            // events of a kind without a rate for one sample
  double duration_s = 0;              // 0: until the end
  std::size_t stack_bytes = 8192;     // copied of each stack
  std::size_t ring_kib = 4096;        // of each CPU
};

// What a preloaded library is asked for.
struct RecordRequest {
  std::vector<std::string> command;  // the program and its arguments
  std::string output;                // a file, or a directory; see RecordOutput
  // What STROBE_CPU_FREQUENCY_HZ and STROBE_WALL_FREQUENCY_HZ say, if not given.
  std::optional<double> cpu_frequency_hz;
  std::optional<double> wall_frequency_hz;
  bool allocations = false;
  bool shows_top = true;
};

// What a recording by perf events needs of the command.
struct RecordHost {
  SymbolSearch search{};
  // Called several times a second with a line for the terminal.
  std::function<void(const std::string& line)> progress{};
  // Takes over the profile of `process`, or the reason why there is none. False if it could not be
  // written.
  std::function<bool(absl::StatusOr<LoadedProfile> loaded, std::uint32_t process)> deliver{};
};

// Records by perf events. Returns the status to exit with: that of the command if there is one. If
// the command was killed by a signal, ends this process by the same signal. Linux on x86-64 only.
int RecordPerf(const RecordOptions& options, const RecordHost& host);

// Runs the command under a preloaded library, writes the profile and prints its first rows to
// standard error. Returns the status that this process shall end with: that of the command; 126 or
// 127, as of a shell, if it cannot be run. Ends this process by the signal that ended the command.
// Linux only.
int RecordPreloaded(const RecordRequest& request, const Terminal& terminal);

// What main does: sees that the options fit together, and records. Returns the status to exit with.
int RunRecord(const RecordOptions& options, Request& request, RecordHost host,
              const Terminal& terminal);
// Declares the options. The file to write, and where code is looked for, go to `request`.
void DeclareRecord(CLI::App& app, RecordOptions& options, Request& request);
// Moves what stands behind the first "--" out of the arguments of `strobe record`: CLI11 takes it
// for a mark of its own.
void CutCommand(std::vector<std::string>& arguments, RecordOptions& options);
// Names the functions of a recording, writes it to request.output (by default strobe-PID.pb.gz),
// and says on standard error where it is and where the time went.
absl::Status FinishRecording(LoadedProfile loaded, std::uint32_t process, Request request);

}  // namespace strobe::internal
