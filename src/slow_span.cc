#include "strobe/slow_span.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "strobe/aggregate/slow_spans.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/registration_link.h"

namespace strobe {
namespace {

// Threads take the numbers of spans in blocks, so that they seldom write to the same word. The
// first number of a block is not used: 0 is none.
constexpr SpanNumber kBlockSpans = 256;
constinit std::atomic<SpanNumber> next_block{0};
constinit thread_local SpanNumber last_span = kBlockSpans - 1;

SpanNumber NewSpan() {
  if (last_span % kBlockSpans == kBlockSpans - 1)
    last_span = next_block.fetch_add(kBlockSpans, std::memory_order_relaxed);
  return ++last_span;
}

}  // namespace

void SlowSpan::Begin(std::int64_t slow_over_ns) noexcept {
  if (internal::OwnContext().span() != 0) return;
  const std::int64_t now_ns = SystemClock().MonotonicNs();
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  slow_at_ns_ = now_ns + std::min(slow_over_ns, kNever - now_ns);
  span_ = NewSpan();
  internal::BeginOwnSpan(span_, slow_at_ns_);
}

void SlowSpan::End() const noexcept {
  // The thread's word comes last: a collector that does not see the span under way sees it here.
  if (SystemClock().MonotonicNs() > slow_at_ns_) NoteSlowSpan(span_);
  internal::EndOwnSpan();
}

}  // namespace strobe
