// SlowSpan: samples of a span that takes longer than its threshold have the label slow=true.
//
//   strobe::SlowSpan span(50'000'000);  // 50 ms
#pragma once

#include <cstdint>

#include "strobe/core/sample_context.h"

namespace strobe {

// What ScopedZone and ScopedTrace take besides their names.
struct SpanOptions {
  // The threshold: a SlowSpan lies around the scope. 0 for none.
  std::int64_t slow_over_ns = 0;
};

// A span of the calling thread from the construction to the end of the scope, which must be on the
// same thread. It takes two looks at the monotonic clock, and allocates nothing.
//
// * Samples are told apart by their span until the period ends. Then those of spans that have
//   lasted longer than their thresholds, ended or not, are in rows with the label slow=true
//   (kSlowLabel), and all others in rows without. So each sample is in the profile once, and the
//   amounts of both add up to the thread's clock.
// * A span that several periods share is judged in each by the time that the period ends: a period
//   that ends before the threshold is reached does not show it as slow.
// * Spans with a threshold do not nest: the outermost one decides for all that lies in it.
// * The limits: samples of a period whose spans have no room (half of collector.memory_bytes is for
//   contexts), and slow spans beyond SlowSpans::kMaxSpans in a period, count as not slow, and in
//   Stats::spans_overflowed.
class [[nodiscard]] SlowSpan {
 public:
  // Of 0 or less, the threshold is none: the span is not one.
  explicit SlowSpan(std::int64_t slow_over_ns) noexcept {
    if (slow_over_ns > 0) Begin(slow_over_ns);
  }
  SlowSpan(const SlowSpan&) = delete;
  SlowSpan& operator=(const SlowSpan&) = delete;
  ~SlowSpan() {
    if (span_ != 0) End();
  }

 private:
  void Begin(std::int64_t slow_over_ns) noexcept;
  void End() const noexcept;

  SpanNumber span_ = 0;
  std::int64_t slow_at_ns_ = 0;
};

}  // namespace strobe
