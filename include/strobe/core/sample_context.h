// ThreadContext: what a thread is doing, as a capture of the thread reads it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strobe/base/signal_safe.h"
#include "strobe/core/label_set.h"

namespace strobe {

// The labels of samples that a traced thread took: numbers, under the keys that Datadog knows.
inline constexpr std::string_view kTraceIdLabel = "trace id";
inline constexpr std::string_view kSpanIdLabel = "span id";
inline constexpr std::string_view kLocalRootSpanIdLabel = "local root span id";

// The span that a thread works in. All zero for none. Of a trace id of 128 bits, the lower 64.
struct TraceContext {
  std::uint64_t trace_id = 0;
  std::uint64_t span_id = 0;
  std::uint64_t local_root_span_id = 0;  // the first span of the trace in this process

  static constexpr std::size_t kWords = 3;
  [[nodiscard]] bool empty() const { return (trace_id | span_id | local_root_span_id) == 0; }
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// The labels of the ids that are not zero.
LabelSet TraceLabels(const TraceContext& trace);

// What a thread was doing at a sample.
struct SampleContext {
  std::uint64_t labels = kNoContext;  // the number of a set in a LabelTable
  TraceContext trace;

  SampleContext() = default;
  // Implicit: most contexts are a number of labels.
  SampleContext(std::uint64_t number) : labels(number) {}  // NOLINT(google-explicit-constructor)
  SampleContext(std::uint64_t number, const TraceContext& span) : labels(number), trace(span) {}

  [[nodiscard]] bool empty() const { return labels == kNoContext && trace.empty(); }
  friend bool operator==(const SampleContext&, const SampleContext&) = default;
};

// Words in a thread's channel. Only the thread itself writes them. A capture reads them on the same
// thread, in a signal handler, or on another thread. No reader sees a mixture of two traces: one
// that comes in the middle of a change sees no trace.
class ThreadContext {
 public:
  // Numbers of labels are below 2^32.
  void SetLabels(std::uint64_t number) noexcept {
    word_.store((word_.load(std::memory_order_relaxed) & ~kLabels) | (number & kLabels),
                std::memory_order_release);
  }
  void SetTrace(const TraceContext& trace) noexcept {
    const std::uint64_t word = (word_.load(std::memory_order_relaxed) & ~kHasTrace) + kChange;
    word_.store(word, std::memory_order_relaxed);
    if (trace.empty()) return;
    // Release: who reads a new id also reads the changed word.
    trace_[0].store(trace.trace_id, std::memory_order_release);
    trace_[1].store(trace.span_id, std::memory_order_release);
    trace_[2].store(trace.local_root_span_id, std::memory_order_release);
    word_.store(word | kHasTrace, std::memory_order_release);
  }
  void Set(const SampleContext& context) noexcept {
    SetLabels(context.labels);
    SetTrace(context.trace);
  }
  // Signal-safe. One load if the thread has neither labels nor a trace.
  [[nodiscard]] STROBE_SIGNAL_SAFE SampleContext Read() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    SampleContext context(word & kLabels);
    if ((word & kHasTrace) == 0) return context;
    context.trace = {.trace_id = trace_[0].load(std::memory_order_acquire),
                     .span_id = trace_[1].load(std::memory_order_acquire),
                     .local_root_span_id = trace_[2].load(std::memory_order_acquire)};
    if (word_.load(std::memory_order_relaxed) != word) context.trace = {};
    return context;
  }

 private:
  static constexpr std::uint64_t kLabels = 0xFFFFFFFF;
  static constexpr std::uint64_t kHasTrace = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kChange = std::uint64_t{1} << 33;  // a counter of changes above it

  std::atomic<std::uint64_t> word_{kNoContext};
  std::array<std::atomic<std::uint64_t>, TraceContext::kWords> trace_{};
};

}  // namespace strobe
