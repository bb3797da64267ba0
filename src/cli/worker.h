// The command as the worker of programs: see strobe/worker/README.md.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace strobe::internal {

// If this process was begun as the worker of a program, serves that program, and exits.
void ServeIfAsked(int argc, char** argv);

// Serves every program of the user that finds the socket, until a signal ends it. Prints how a
// program finds it, and at the end what it has served. An empty path means the default one.
// Unimplemented where there are no workers.
absl::Status ListenForPrograms(const std::string& path);

}  // namespace strobe::internal
