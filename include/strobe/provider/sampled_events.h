// SampledEvents: brings amounts that the program itself knows (bytes sent, jobs in a queue, time on
// a GPU) into its profiles, with the stacks that they belong to.
//
//   strobe::SampledEvents<BytesSent> bytes_sent(profiler, 64 << 10);
//   bytes_sent.Add(1500);
//
// See src/examples/events.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/event_target.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// Samples events of a provider of the program's own. If the provider has one value type, the type
// adds the amounts up. If it has two, the first counts the events, and the second adds the amounts
// up. Sums are right in the mean: see amount_sampler.h.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
template <EventProvider Provider>
class SampledEvents {
 public:
  // `interval` is the mean distance of sampled points on the axis of amounts, in the unit of the
  // amounts, from 1 to 2^40; others are the nearest of these. At 1, every event is recorded, and
  // all sums are exact. Distances are kept for each thread and provider: if two objects have the
  // same provider, each thread goes on to the next point with the interval of the last one.
  //
  // The profiler, whose traits list the provider, must outlive the object. It counts events while a
  // session runs.
  template <class Profiler>
  SampledEvents(Profiler& profiler, std::int64_t interval)
      : target_(internal::TargetOf<Provider, kSkippedFrames>(profiler)), interval_(interval) {}
  SampledEvents(const SampledEvents&) = delete;
  SampledEvents& operator=(const SampledEvents&) = delete;

  // Brings an event of the calling function. An amount of 0 is none. An event that is not sampled
  // costs a subtraction. Any thread, but not in a signal handler.
  STROBE_ALWAYS_INLINE void Add(std::uint64_t amount) noexcept {
    if (interval_ > 1 && !sampler.Count(amount)) [[likely]]
      return;
    Take(amount);
    asm volatile("" ::: "memory");  // no tail call: the caller stays in the stack
  }

  // What no profile has of the events so far, as an estimate: those while no session ran.
  [[nodiscard]] SampledAmounts untaken() const { return untaken_.Get(); }

 private:
  static constexpr std::uint32_t kSkippedFrames = 2;  // the target's function, and Take
  static constexpr std::uint64_t kMaxAmount = std::uint64_t{1} << 60;

  [[gnu::noinline]] void Take(std::uint64_t amount) noexcept {
    SampledAmounts amounts{.count = amount > 0 ? 1 : 0,
                           .total = static_cast<std::int64_t>(std::min(amount, kMaxAmount))};
    if (interval_ > 1) amounts = sampler.Take(amount, interval_, internal::NewSeed());
    if (amounts.count == 0 || target_.record(target_.profiler, amounts, nullptr)) return;
    untaken_.Add(amounts);
  }

  static inline constinit thread_local internal::AmountSampler sampler;

  const internal::EventTarget target_;
  const std::int64_t interval_;
  internal::AmountsSum untaken_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
