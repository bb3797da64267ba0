// record: profiles a program that is given as a command.
#pragma once

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
  std::string output;                // a file, or a directory; see RecordOutput
  double cpu_frequency_hz = 100;
  double wall_frequency_hz = 0;
  bool allocations = false;
  bool shows_top = true;
};

// Adds the options of `strobe record` to `command`.
void AddRecordOptions(CLI::App& command, RecordRequest& request);

// Runs the command under a preloaded library, writes the profile and prints its first rows to
// standard error. Returns the status that this process shall end with: that of the command; 126 or
// 127, as of a shell, if it cannot be run. Ends this process by the signal that ended the command.
int RecordPreloaded(const RecordRequest& request, const Terminal& terminal);

}  // namespace strobe::internal
