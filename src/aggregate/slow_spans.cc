#include "strobe/aggregate/slow_spans.h"

#include <algorithm>

namespace strobe {
namespace {

constinit SlowSpans own_spans;
constinit std::atomic<SlowSpans*> process_spans{&own_spans};
constinit std::atomic<void (*)(SpanNumber) noexcept> span_listener{nullptr};

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

SlowSpans& ProcessSlowSpans() { return *process_spans.load(std::memory_order_acquire); }

void UseProcessSlowSpans(SlowSpans& spans) {
  process_spans.store(&spans, std::memory_order_release);
}

void NoteSlowSpan(SpanNumber span) noexcept {
  ProcessSlowSpans().Add(span);
  if (auto* const listener = span_listener.load(std::memory_order_acquire)) listener(span);
}

void TellSlowSpans(void (*listener)(SpanNumber span) noexcept) {
  span_listener.store(listener, std::memory_order_release);
}

}  // namespace strobe
