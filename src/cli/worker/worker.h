// Whether this process was begun as the worker of a program.
#pragma once

namespace strobe::internal {

// If it was, serves that program, and exits: see strobe/worker/remote_profiler.h.
void ServeIfAsked(int argc, char** argv);

}  // namespace strobe::internal
