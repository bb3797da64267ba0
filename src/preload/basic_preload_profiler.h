// BasicPreloadProfiler: a PreloadProfiler of the parts that Traits names.
#pragma once

#include <string_view>
#include <utility>

#include "preload_profiler.h"
#include "strobe/platform/native.h"
#include "strobe/profiler.h"

namespace strobe::internal {

// An executable is asked for a function before any library.
inline void SayAllocationsAreUnseen() {
  NativePlatform::WriteLine("strobe: " + NativePlatform::ProgramName() +
                            " has an allocator in its executable, which no preloaded library "
                            "sees: its allocations are not recorded");
}

template <class Traits>
class BasicPreloadProfiler : public PreloadProfiler {
 public:
  explicit BasicPreloadProfiler(ProfilerOptions options) : profiler(std::move(options)) {}

  Registration RegisterThread(std::string_view name) override {
    return profiler.RegisterThread(name);
  }
  absl::Status Start() override { return profiler.Start(); }
  absl::Status Stop() override { return profiler.Stop(); }
  absl::Status Flush() override { return profiler.Flush(); }

 protected:
  ~BasicPreloadProfiler() = default;

  BasicProfiler<Traits> profiler;
};

}  // namespace strobe::internal
