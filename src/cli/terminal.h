// What the command asks of the system: its terminal and its arguments. One file a system.
#pragma once

#include <string>
#include <vector>

namespace strobe::internal {

struct Terminal {
  bool shows_output = false;  // standard output is a terminal that understands colours
  bool shows_errors = false;  // standard error is a terminal
  int columns = 0;            // its width; 0 if unknown
};
Terminal FindTerminal();

// The arguments as UTF-8, without the program's name.
std::vector<std::string> ProgramArguments(int argc, char** argv);

// Standard input and output carry bytes: no system may change the ends of lines.
void UseBinaryStreams();

}  // namespace strobe::internal
