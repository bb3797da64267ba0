// WaitSink: samples waits of one kind by their length, and takes them to one profiler at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/process_sink.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A constant-initialized global. Begin and Close: control plane. The rest is signal-safe.
class WaitSink {
 public:
  // As ProcessSink::Open. The interval is the mean distance of sampled points on the axis of
  // delays: 1 to kMaxSamplingInterval.
  template <class Prepare>
  [[nodiscard]] bool Begin(const EventTarget& target, std::int64_t interval_ns,
                           const Prepare& prepare) {
    return sink_.Open(target, [&] {
      interval_ns_.store(interval_ns, std::memory_order_relaxed);
      prepare();
    });
  }
  void Close() { sink_.Close(); }

  [[nodiscard]] bool is_open() const noexcept { return sink_.is_open(); }
  [[nodiscard]] SampledAmounts untaken() const { return sink_.untaken(); }

  // A wait of the calling thread that has just ended. Adds no frame to the stack but that of the
  // target's function.
  STROBE_ALWAYS_INLINE void Note(std::int64_t delay_ns) noexcept {
    if (!sink_.is_open()) return;
    RandomSource random(NewSeed());
    // A coarse clock may see no time pass.
    const auto delay = static_cast<std::uint64_t>(std::max<std::int64_t>(delay_ns, 1));
    const SampledAmounts amounts =
        SampleOne(delay, interval_ns_.load(std::memory_order_relaxed), random);
    if (amounts.count == 0) return;
    const ProcessSink::Use use(sink_);
    use.Record(amounts);
  }

 private:
  ProcessSink sink_;
  std::atomic<std::int64_t> interval_ns_{1};
};

}  // namespace internal
}  // namespace strobe
