// A worker with the default parts, and what a Profiler looks for: see
// runtime/control/worker_link.h.
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/default_traits.h"
#include "strobe/runtime/control/worker_link.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/program/remote_core.h"
#include "strobe/worker/run_worker.h"
#include "strobe/worker/serve/serve_program.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe {
namespace internal {
namespace {

absl::StatusOr<std::unique_ptr<AbstractCore>> Make(const ProfilerOptions& options,
                                                   const void* channel_parts) {
  const WorkerUse* const use = FindWorkerUse(channel_parts);
  if (use == nullptr && channel_parts != ChannelParts<DefaultTraits>()) {
    return absl::UnimplementedError(
        "worker.enabled: of a profiler with providers of its own, main begins with "
        "RunWorkerIfAsked<Traits>; the clock, the ring and the unwinder are the default ones");
  }
  const bool may_go_on = *options.worker.fallback == WorkerFallback::kInProcess;
  if (may_go_on) {
    if (absl::Status status = SharedArea::Available(); !status.ok()) return status;
  }
  if (use == nullptr) return std::make_unique<RemoteCore>(options, &ServeByDefault);
  return std::make_unique<RemoteCore>(options, use->make(options.threads), use->serve);
}

}  // namespace

ServeEnd ServeByDefault(const WorkerSocket& socket, const SharedArea* own_area) {
  return ServeProgram<DefaultTraits>(socket, own_area, {});
}

}  // namespace internal

void RunWorkerIfAsked(int argc, char** argv) {
  internal::RunWorkerIfAsked(argc, argv, &internal::ServeByDefault);
}

}  // namespace strobe

// A call of RunWorkerIfAsked, or the flag -Wl,-u, makes a linker take it.
extern "C" __attribute__((visibility("hidden"))) void strobe_make_worker_core(
    const strobe::ProfilerOptions& options, const void* channel_parts,
    absl::StatusOr<std::unique_ptr<strobe::internal::AbstractCore>>& core) {
  core = strobe::internal::Make(options, channel_parts);
}
