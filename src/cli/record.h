// record: profiles a program that is given as a command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "terminal.h"

namespace CLI {
class App;
}

namespace strobe::internal {

// What the arguments of `strobe record` say.
struct RecordRequest {
  std::vector<std::string> command;  // the program and its arguments
  bool has_mark = false;             // "--" stood before `command`, or in it
  std::string output;                // a file, or a directory; see RecordOutput
  // What STROBE_CPU_FREQUENCY_HZ and STROBE_WALL_FREQUENCY_HZ say, if not given.
  std::optional<double> cpu_frequency_hz;
  std::optional<double> wall_frequency_hz;
  bool allocations = false;
  bool shows_top = true;
};

// Moves what stands behind the first "--" out of the arguments of `strobe record`: CLI11 takes it
// for a mark of its own.
void CutCommand(std::vector<std::string>& arguments, RecordRequest& request);
// Adds the options of `strobe record` to `command`.
void AddRecordOptions(CLI::App& command, RecordRequest& request);

// Runs the command under a preloaded library, writes the profile and prints its first rows to
// standard error. Returns the status that this process shall end with: that of the command; 126 or
// 127, as of a shell, if it cannot be run. Ends this process by the signal that ended the command.
int RecordPreloaded(const RecordRequest& request, const Terminal& terminal);

}  // namespace strobe::internal
