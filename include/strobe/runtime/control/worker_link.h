// The link from a Profiler to the library strobe-worker, which a program may have or not.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/runtime/control/abstract_core.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Tells the parts that work on the program's threads from those of other traits, by its address.
// The program and its worker have the same ones; each may name outputs and a symbolizer of its own.
template <class Platform, class Clock, class Ring, class Unwinder, class Providers>
struct ChannelPartsMark {
  static inline char mark = 0;
};
template <class Traits>
constexpr const void* ChannelParts() {
  return &ChannelPartsMark<typename Traits::Platform, typename Traits::Clock, typename Traits::Ring,
                           typename Traits::Unwinder, typename Traits::Providers>::mark;
}

// Makes the core of a profiler with worker.enabled. FailedPrecondition if the program does not link
// strobe-worker; Unimplemented if a worker cannot serve these parts, or the system refuses memory
// that two processes share.
absl::StatusOr<std::unique_ptr<AbstractCore>> MakeWorkerCore(const ProfilerOptions& options,
                                                             const void* channel_parts);

}  // namespace internal
}  // namespace strobe
