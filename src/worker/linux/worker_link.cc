#include "strobe/runtime/worker_link.h"

#include <memory>

#include "absl/status/status.h"
#include "strobe/default_traits.h"
#include "strobe/worker/local_worker.h"
#include "strobe/worker/shared_area.h"
#include "strobe/worker/worker_core.h"

// See runtime/worker_link.h: MakeWorkerCore calls it. The flag -Wl,-u of strobe-worker's users, or
// RunWorkerIfAsked, makes a linker take it.
extern "C" __attribute__((visibility("hidden"))) void strobe_make_worker_core(
    const strobe::ProfilerOptions& options, const void* channel_parts,
    absl::StatusOr<std::unique_ptr<strobe::internal::AbstractCore>>& core) {
  using namespace strobe::internal;
  if (channel_parts != ChannelParts<strobe::DefaultTraits>()) {
    core = absl::UnimplementedError(
        "worker.enabled: only the outputs and the symbolizer may be other than the default ones");
  } else if (*options.worker.fallback == strobe::WorkerFallback::kInProcess &&
             !SharedArea::IsPossible()) {
    core =
        absl::UnimplementedError("worker.enabled: the system refuses memory that processes share");
  } else {
    core = std::make_unique<WorkerCore>(options, &ServeByDefault);
  }
}
