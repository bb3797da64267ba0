// Of libstrobe-preload.so: the default parts.
#include <utility>

#include "basic_preload_profiler.h"

namespace strobe::internal {
namespace {

class CpuProfiler final : public BasicPreloadProfiler<DefaultTraits> {
 public:
  using BasicPreloadProfiler::BasicPreloadProfiler;
};

}  // namespace

PreloadProfiler& MakePreloadProfiler(ProfilerOptions options) {
  return *new CpuProfiler(std::move(options));
}

}  // namespace strobe::internal
