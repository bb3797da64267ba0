#include "strobe/aggregate/slow_spans.h"

#include <algorithm>
#include <span>

namespace strobe {
namespace {

constinit SlowSpans own_spans;
constinit std::atomic<SlowSpans* (*)()> spans_of_thread{nullptr};
constinit std::atomic<void (*)(SpanNumber) noexcept> span_listener{nullptr};

}  // namespace

std::vector<SpanNumber> SlowSpans::Sorted(std::span<const SpanNumber> under_way) const {
  const std::uint64_t count = std::min<std::uint64_t>(added(), kMaxSpans);
  std::vector<SpanNumber> sorted(under_way.begin(), under_way.end());
  sorted.reserve(sorted.size() + count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const SpanNumber span = spans_[i].load(std::memory_order_acquire)) sorted.push_back(span);
  }
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

SlowSpans& ProcessSlowSpans() {
  auto* const of_thread = spans_of_thread.load(std::memory_order_acquire);
  SlowSpans* const served = of_thread != nullptr ? of_thread() : nullptr;
  return served != nullptr ? *served : own_spans;
}

void UseProcessSlowSpans(SlowSpans* (*of_thread)()) {
  spans_of_thread.store(of_thread, std::memory_order_release);
}

void NoteSlowSpan(SpanNumber span) noexcept {
  ProcessSlowSpans().Add(span);
  if (auto* const listener = span_listener.load(std::memory_order_acquire)) listener(span);
}

void TellSlowSpans(void (*listener)(SpanNumber span) noexcept) {
  span_listener.store(listener, std::memory_order_release);
}

}  // namespace strobe
