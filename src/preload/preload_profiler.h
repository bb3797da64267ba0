// PreloadProfiler: the profiler of a program that does not know of it. Each preloaded library has
// one model, which the linker chooses: cpu_profiler.cc or allocation_profiler.cc.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "strobe/core/options.h"
#include "strobe/core/registration.h"

namespace strobe::internal {

// Thread-safe. Never destroyed, because threads use it until the process has ended.
class PreloadProfiler {
 public:
  PreloadProfiler() = default;
  PreloadProfiler(const PreloadProfiler&) = delete;
  PreloadProfiler& operator=(const PreloadProfiler&) = delete;

  virtual Registration RegisterThread(std::string_view name) = 0;
  virtual absl::Status Start() = 0;
  virtual absl::Status Stop() = 0;
  virtual absl::Status Flush() = 0;

 protected:
  ~PreloadProfiler() = default;
};

// May throw std::bad_alloc.
PreloadProfiler& MakePreloadProfiler(ProfilerOptions options);

}  // namespace strobe::internal
