// SlowSpans: which spans took longer than their thresholds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "strobe/core/sample_context.h"

namespace strobe {

// The label of samples in a span that took longer than its threshold, with the text "true".
inline constexpr std::string_view kSlowLabel = "slow";

// The last kMaxSpans slow spans that have ended. Only slow ones are here, so a span that is not
// slow costs nothing shared. Thread-safe, and without a lock.
class SlowSpans {
 public:
  static constexpr std::size_t kMaxSpans = std::size_t{1} << 16;

  // Allocates nothing. The oldest span is forgotten if there are kMaxSpans.
  void Add(SpanNumber span) noexcept {
    const std::uint64_t place = added_.fetch_add(1, std::memory_order_relaxed);
    spans_[place % kMaxSpans].store(span, std::memory_order_release);
  }
  // All spans that were added, forgotten ones included.
  [[nodiscard]] std::uint64_t added() const { return added_.load(std::memory_order_relaxed); }
  // In order, each once, with those of `under_way`: the caller has looked for these before.
  [[nodiscard]] std::vector<SpanNumber> Sorted(std::span<const SpanNumber> under_way = {}) const;

 private:
  std::atomic<std::uint64_t> added_{0};
  std::array<std::atomic<SpanNumber>, kMaxSpans> spans_{};  // 0 in a place that was never used
};

// Those of the process. Its pages are untouched until spans are slow.
SlowSpans& ProcessSlowSpans();
// In a process that serves others: of_thread() is that of the one that the calling thread serves;
// nullptr for this process's own.
void UseProcessSlowSpans(SlowSpans* (*of_thread)());

// A slow span of this process has ended: adds it to the process's, and tells the listener.
void NoteSlowSpan(SpanNumber span) noexcept;
// From now on NoteSlowSpan calls listener(span), too. nullptr ends that.
void TellSlowSpans(void (*listener)(SpanNumber span) noexcept);

}  // namespace strobe
