#include "../worker.h"

#include <cinttypes>
#include <cstdio>

#include "strobe/worker/worker_listener.h"
#include "strobe/worker/worker_profiler.h"

namespace strobe::internal {

void ServeIfAsked(int argc, char** argv) { RunWorkerIfAsked(argc, argv); }

absl::Status ListenForPrograms(const std::string& path) {
  const absl::StatusOr<ListenerCounts> counts =
      ListenForPrograms(path, [](const std::string& where) {
        std::printf("%s=%s\n", kWorkerSocketVariable, where.c_str());
        std::fflush(stdout);
      });
  if (!counts.ok()) return counts.status();
  std::fprintf(stderr,
               "strobe: served %" PRIu64 " programs; refused %" PRIu64 " of other users, %" PRIu64
               " for want of room\n",
               counts->served, counts->refused_users, counts->refused_beyond);
  return absl::OkStatus();
}

}  // namespace strobe::internal
