// Of libstrobe-preload-events.so: the default parts and all events, where several are asked for.
#include <optional>
#include <utility>

#include "basic_preload_profiler.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/exceptions/exception_sampling.h"
#include "strobe/locks/contention_sampling.h"

namespace strobe::internal {
namespace {

struct EventTraits : DefaultTraits {
  using Providers =
      ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider, AllocationProvider,
                   ContentionProvider, ConditionProvider, ExceptionProvider>;
};

class EventProfiler final : public BasicPreloadProfiler<EventTraits> {
 public:
  explicit EventProfiler(ProfilerOptions options) : BasicPreloadProfiler(std::move(options)) {
    if (SeesMalloc()) {
      allocations_.emplace(profiler);
    } else {
      SayAllocationsAreUnseen();
    }
  }

 private:
  std::optional<AllocationSampling> allocations_;
  const ContentionSampling contentions_{profiler, {.absl_mutexes = false}};
  const ExceptionSampling exceptions_{profiler};
};

}  // namespace

PreloadProfiler& MakePreloadProfiler(ProfilerOptions options) {
  return *new EventProfiler(std::move(options));
}

}  // namespace strobe::internal
