#include "../worker.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "strobe/worker/local_worker.h"
#include "worker_output.h"

namespace strobe::internal {

void ServeIfAsked(int argc, char** argv) {
  RunWorkerIfAsked(argc, argv, [](const WorkerSocket& socket, const SharedArea* own_area) {
    const absl::StatusOr<Serve> serve = ServeWithAskedOutput();
    if (serve.ok()) return (*serve)(socket, own_area);
    std::fprintf(stderr, "strobe: %s\n", std::string(serve.status().message()).c_str());
    return 1;
  });
}

}  // namespace strobe::internal
