// FindProgram: the program of a command. RefusalOf: why it cannot be recorded.
#pragma once

#include <cstdint>
#include <string>

#include "../../../process/linux/program_file.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct RecordedProgram {
  std::string path;     // of the file that exec is given
  std::string refusal;  // a sentence that says why it is not run; empty if it can be
  int status = 0;       // what a shell would return then: 126 or 127
  // True if only the preloading is refused: perf events do not need it.
  bool fits_perf = false;
  ProgramFile file{};  // what it is, unless nothing shall record it
};

enum class RecordedBy : std::uint8_t { kPreload, kPerfEvents, kNothing };

// Looks for `name` as a shell does, in PATH if it has no slash. Refuses a file that does not exist
// or cannot be executed, and one that cannot be recorded that way:
// * a program that runs with more rights than its user;
// * where a library is to be preloaded, a program that is statically linked, or is of another
//   architecture or C library.
// Of a script, the interpreter is judged.
RecordedProgram FindProgram(const std::string& name, RecordedBy how);

}  // namespace internal
}  // namespace strobe
