#include "../worker.h"

#include "strobe/worker/worker_profiler.h"

namespace strobe::internal {

void ServeIfAsked(int argc, char** argv) { RunWorkerIfAsked(argc, argv); }

}  // namespace strobe::internal
