// RunCommand: the whole command `strobe`, but for its main().
#pragma once

namespace strobe::internal {

// Serves a program, if this process was begun as a worker; else does what the arguments say.
// `argv` is that of main(). Returns the status to exit with: see exit_status.h.
int RunCommand(int argc, char** argv);

}  // namespace strobe::internal
