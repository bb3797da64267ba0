#include "strobe/aggregate/slow_spans.h"

#include <algorithm>

namespace strobe {
namespace {

constinit SlowSpans process_slow_spans;

}  // namespace

std::vector<SpanNumber> SlowSpans::Sorted() const {
  const std::uint64_t count = std::min<std::uint64_t>(added(), kMaxSpans);
  std::vector<SpanNumber> sorted;
  sorted.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const SpanNumber span = spans_[i].load(std::memory_order_acquire)) sorted.push_back(span);
  }
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

SlowSpans& ProcessSlowSpans() { return process_slow_spans; }

}  // namespace strobe
