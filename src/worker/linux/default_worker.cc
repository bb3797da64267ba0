#include "strobe/default_traits.h"
#include "strobe/worker/local_worker.h"
#include "strobe/worker/run_worker.h"
#include "strobe/worker/served_session.h"

namespace strobe {

int internal::ServeByDefault(const WorkerSocket& socket, const SharedArea* own_area) {
  return ServeProgram<DefaultTraits>(socket, {}, own_area);
}

void RunWorkerIfAsked(int argc, char** argv) {
  internal::RunWorkerIfAsked(argc, argv, &internal::ServeByDefault);
}

}  // namespace strobe
