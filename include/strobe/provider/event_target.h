// EventTarget: a profiler and a provider of its list, as a pair of pointers, for code that brings
// events and is no template.
#pragma once

#include <array>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// record(profiler, amounts, keeper) is CaptureHere of the profiler: data plane, false if nothing
// counts the event. The profile shows the stack from a caller of `record` on.
struct EventTarget {
  bool (*record)(void* profiler, const SampledAmounts& amounts, StackKeeper* keeper) = nullptr;
  void* profiler = nullptr;
};

// The provider's values for an event. Of two value types or more, the first counts events and the
// second adds their amounts up. One alone adds the amounts up.
template <EventProvider Provider>
constexpr auto EventValues(const SampledAmounts& amounts) {
  std::array<std::int64_t, Provider::kValueTypes.size()> values{};
  if constexpr (values.size() == 1) {
    values = {amounts.total};
  } else {
    values[0] = amounts.count;
    values[1] = amounts.total;
  }
  return values;
}

template <class Profiler, EventProvider Provider, std::uint32_t skip>
[[gnu::noinline]] STROBE_SIGNAL_SAFE bool RecordEvent(void* profiler, const SampledAmounts& amounts,
                                                      StackKeeper* keeper) {
  const bool is_taken = static_cast<Profiler*>(profiler)->template CaptureHere<Provider>(
      EventValues<Provider>(amounts), skip, keeper);
  asm volatile("" ::: "memory");  // no tail call: the number of frames is fixed
  return is_taken;
}

// The stacks lack `skip` leaf frames, of which the first is that of `record`.
template <EventProvider Provider, std::uint32_t skip, class Profiler>
EventTarget TargetOf(Profiler& profiler) {
  return {.record = &RecordEvent<Profiler, Provider, skip>, .profiler = &profiler};
}

}  // namespace internal
}  // namespace strobe
