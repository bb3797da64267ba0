// Of libstrobe-preload-locks.so: the default parts, and waits for locks and conditions.
#include <utility>

#include "basic_preload_profiler.h"
#include "strobe/locks/contention_sampling.h"

namespace strobe::internal {
namespace {

class LockProfiler final : public BasicPreloadProfiler<LockTraits> {
 public:
  explicit LockProfiler(ProfilerOptions options) : BasicPreloadProfiler(std::move(options)) {}

 private:
  // Of Abseil's mutexes, the program's own copy has a hook of its own, which is out of reach.
  const ContentionSampling sampling_{profiler, {.absl_mutexes = false}};
};

}  // namespace

PreloadProfiler& MakePreloadProfiler(ProfilerOptions options) {
  return *new LockProfiler(std::move(options));
}

}  // namespace strobe::internal
