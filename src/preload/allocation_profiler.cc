// Of libstrobe-preload-allocations.so: the default parts, and allocations.
#include <utility>

#include "basic_preload_profiler.h"
#include "strobe/allocations/allocation_sampling.h"

namespace strobe::internal {
namespace {

class AllocationProfiler final : public BasicPreloadProfiler<AllocationTraits> {
 public:
  explicit AllocationProfiler(ProfilerOptions options)
      : BasicPreloadProfiler(std::move(options)), sampling_(profiler) {}

 private:
  AllocationSampling sampling_;
};

}  // namespace

PreloadProfiler& MakePreloadProfiler(ProfilerOptions options) {
  return *new AllocationProfiler(std::move(options));
}

}  // namespace strobe::internal
