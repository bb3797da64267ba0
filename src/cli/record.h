// record: what the arguments of `strobe record` say, and what it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "command.h"
#include "loaded_profile.h"
#include "strobe/symbolize/symbol_search.h"

namespace CLI {
class App;
}

namespace strobe::internal {

struct RecordOptions {
  std::vector<std::uint32_t> processes;  // that run already
  std::vector<std::string> command;      // or one to run
  bool uses_perf = false;                // of a command; processes always need it
  std::string events = "task-clock";     // names, with commas between them
  double hz = 99;
  std::uint64_t count = 1;         // events of a kind without a rate for one sample
  double duration_s = 0;           // 0: until the end
  std::size_t stack_bytes = 8192;  // copied of each stack
  std::size_t ring_kib = 4096;     // of each CPU
};

// What a recording needs of the command.
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

// What main does: sees that the options fit together, and records. Returns the status to exit with.
int RunRecord(const RecordOptions& options, Request& request, RecordHost host);
// Declares the options. The file to write, and where code is looked for, go to `request`.
void DeclareRecord(CLI::App& app, RecordOptions& options, Request& request);
// Takes the command that follows "--" off the arguments of `strobe record`.
std::vector<std::string> TakeCommand(std::vector<std::string>& arguments);
// Names the functions of a recording, writes it to request.output (by default strobe-PID.pb.gz),
// and says on standard error where it is and where the time went.
absl::Status FinishRecording(LoadedProfile loaded, std::uint32_t process, Request request);

}  // namespace strobe::internal
