// Of libstrobe-preload-allocations.so: the default parts, and allocations where they can be seen.
#include <utility>

#include "basic_preload_profiler.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/worker/worker_parts.h"

namespace strobe::internal {
namespace {

class AllocationProfiler final : public BasicPreloadProfiler<AllocationTraits> {
 public:
  explicit AllocationProfiler(ProfilerOptions options)
      : BasicPreloadProfiler(std::move(options)), sampling_(profiler) {}

 private:
  AllocationSampling sampling_;
};

class PlainProfiler final : public BasicPreloadProfiler<DefaultTraits> {
 public:
  using BasicPreloadProfiler::BasicPreloadProfiler;
};

}  // namespace

PreloadProfiler& MakePreloadProfiler(ProfilerOptions options) {
  if (!SeesMalloc()) {
    SayAllocationsAreUnseen();
    return *new PlainProfiler(std::move(options));
  }
  if (*options.worker.enabled) {
    UseWorkerFor<AllocationTraits>([](const WorkerSocket& socket, const SharedArea* own_area) {
      return ServeProgram<AllocationTraits>(socket, own_area, {});
    });
  }
  return *new AllocationProfiler(std::move(options));
}

}  // namespace strobe::internal
