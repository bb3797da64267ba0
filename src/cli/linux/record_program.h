// FindProgram: the program of a command, and whether a library can be preloaded into it.
#pragma once

#include <string>

namespace strobe::internal {

struct RecordedProgram {
  std::string path;     // of the file that exec is given
  std::string refusal;  // a sentence that says why it is not run; empty if it can be
  int status = 0;       // what a shell would return then: 126 or 127
};

// Looks for `name` as a shell does, in PATH if it has no slash. Refuses a file that does not exist
// or cannot be executed, and one that no library of this system can be preloaded into: statically
// linked, of another architecture, or with more rights than its user. Of a script, the interpreter
// is judged.
RecordedProgram FindProgram(const std::string& name);

}  // namespace strobe::internal
