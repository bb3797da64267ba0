#include "worker.h"

#include "../no_export.h"
#include "strobe/worker/worker_parts.h"

namespace strobe::testing {

bool ServeIfAsked(int argc, char** argv) {
  RunWorkerIfAsked<NoExportTraits>(argc, argv);
  return true;
}

}  // namespace strobe::testing
