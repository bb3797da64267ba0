// What the command asks of the system: its terminal, its arguments, files of its user. One file a
// system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

// What `process` has written to the file at `path`: at most `max_bytes` bytes, from `offset` on.
// Nothing unless it is a regular file of this user, of root or of the process's user: in a
// directory that all may write to, others could say anything.
std::string ReadFileOf(std::uint32_t process, const std::string& path, std::uint64_t offset,
                       std::size_t max_bytes);

}  // namespace strobe::internal
