// What the command asks of the system: its terminal, its arguments, files of its user. One file a
// system.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

struct Terminal {
  bool shows_output = false;  // standard output is a terminal that understands colours
  bool shows_errors = false;  // standard error is a terminal
  bool is_output = false;     // standard output is a terminal, of whatever kind
  int columns = 0;            // its width; 0 if unknown
};
Terminal FindTerminal();

// True if a program has the terminal of standard error for itself, as editors and pagers do.
bool IsTerminalTaken();

// The arguments as UTF-8, without the program's name.
std::vector<std::string> ProgramArguments(int argc, char** argv);

// Standard input and output carry bytes: no system may change the ends of lines.
void UseBinaryStreams();

// Opens a file that `process` writes, to be read as it grows, also once it has been removed.
// nullptr unless it is a regular file of this user, of root or of the process's user: in a
// directory that all may write to, others could say anything.
std::unique_ptr<ByteSource> OpenFileOf(std::uint32_t process, const std::string& path);

}  // namespace strobe::internal
