// ThreadContext, ProcessContext: what a thread, and the whole process, is doing, as a capture reads
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
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

// The number of a span with a threshold (see SlowSpan); 0 for none. Other spans have the number of
// one that began 2^32 spans ago.
using SpanNumber = std::uint32_t;

// What a thread was doing at a sample.
struct SampleContext {
  // The numbers of labels are below kLabelNumbers.
  static constexpr std::uint64_t kLabelNumbers = std::uint64_t{1} << 16;
  static constexpr unsigned kSpanShift = 17;  // one bit of a thread's word lies in between
  static constexpr unsigned kProcessShift = kSpanShift + 32;
  // The process's labels have a number below it.
  static constexpr std::uint64_t kProcessLabelNumbers = std::uint64_t{1} << (64 - kProcessShift);

  // The numbers of the thread's labels, of the span, and of the process's labels.
  std::uint64_t word = kNoContext;
  TraceContext trace;

  SampleContext() = default;
  // Implicit: most contexts are a number of labels.
  SampleContext(std::uint64_t number) : word(number) {}  // NOLINT(google-explicit-constructor)
  SampleContext(std::uint64_t number, const TraceContext& span) : word(number), trace(span) {}

  // The number of a set in a LabelTable.
  [[nodiscard]] std::uint64_t labels() const { return word & (kLabelNumbers - 1); }
  [[nodiscard]] SpanNumber span() const { return static_cast<SpanNumber>(word >> kSpanShift); }
  // The same for the set of the process (see ProcessContext).
  [[nodiscard]] std::uint64_t process_labels() const { return word >> kProcessShift; }
  // The same without a span, or with the labels of the process.
  [[nodiscard]] SampleContext WithoutSpan() const {
    return SampleContext(labels(), trace).In(process_labels());
  }
  [[nodiscard]] SampleContext In(std::uint64_t process_labels) const {
    return {(word & ((std::uint64_t{1} << kProcessShift) - 1)) | process_labels << kProcessShift,
            trace};
  }
  [[nodiscard]] bool empty() const { return word == kNoContext && trace.empty(); }
  friend bool operator==(const SampleContext&, const SampleContext&) = default;
};

// Words in a thread's channel. Only the thread itself writes them. A capture reads them on the same
// thread, in a signal handler, or on another thread. No reader sees a mixture of two traces: one
// that comes in the middle of a change sees no trace.
class ThreadContext {
 public:
  void SetLabels(std::uint64_t number) noexcept { SetPart(kLabels, number & kLabels); }
  // A span that counts as slow from the time `slow_at_ns` on, by the system's monotonic clock.
  void BeginSpan(SpanNumber span, std::int64_t slow_at_ns) noexcept {
    slow_at_ns_.store(slow_at_ns, std::memory_order_release);
    SetPart(kSpan, std::uint64_t{span} << kSpanShift);
  }
  void EndSpan() noexcept { SetPart(kSpan, 0); }
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
  void Clear() noexcept {
    SetLabels(kNoContext);
    EndSpan();
    SetTrace({});
  }
  // Takes over the other context of the same thread.
  void CopyFrom(const ThreadContext& other) noexcept {
    const SampleContext context = other.Read();
    SetLabels(context.labels());
    SetTrace(context.trace);
    BeginSpan(context.span(), other.slow_at_ns_.load(std::memory_order_relaxed));
  }
  // Signal-safe. One load if the thread has neither labels nor a trace.
  [[nodiscard]] STROBE_SIGNAL_SAFE SampleContext Read() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    SampleContext context(word & (kLabels | kSpan));
    if ((word & kHasTrace) == 0) return context;
    context.trace = {.trace_id = trace_[0].load(std::memory_order_acquire),
                     .span_id = trace_[1].load(std::memory_order_acquire),
                     .local_root_span_id = trace_[2].load(std::memory_order_acquire)};
    if (word_.load(std::memory_order_relaxed) != word) context.trace = {};
    return context;
  }

  // The span that is under way, if it counts as slow by `now_ns`; else 0.
  [[nodiscard]] SpanNumber SlowSpan(std::int64_t now_ns) const noexcept {
    const SpanNumber span = SampleContext(word_.load(std::memory_order_acquire)).span();
    if (span == 0 || now_ns <= slow_at_ns_.load(std::memory_order_acquire)) return 0;
    // A span that has begun meanwhile has another time.
    return SampleContext(word_.load(std::memory_order_relaxed)).span() == span ? span : 0;
  }

 private:
  static constexpr unsigned kSpanShift = SampleContext::kSpanShift;
  static constexpr std::uint64_t kLabels = SampleContext::kLabelNumbers - 1;
  static constexpr std::uint64_t kHasTrace = SampleContext::kLabelNumbers;
  static constexpr std::uint64_t kSpan = std::uint64_t{0xFFFFFFFF} << kSpanShift;
  // A counter of changes, in the bits above the span, which a sample has for another number.
  static constexpr std::uint64_t kChange = std::uint64_t{1} << SampleContext::kProcessShift;

  // Replaces the bits of `part` in the word.
  void SetPart(std::uint64_t part, std::uint64_t bits) noexcept {
    word_.store((word_.load(std::memory_order_relaxed) & ~part) | bits, std::memory_order_release);
  }

  std::atomic<std::uint64_t> word_{kNoContext};
  std::atomic<std::int64_t> slow_at_ns_{0};  // of the span, if there is one
  std::array<std::atomic<std::uint64_t>, TraceContext::kWords> trace_{};
};

namespace STROBE_HIDDEN internal {

// The labels that samples of all threads of the process have (see ProcessLabel): the number of a
// set in its LabelTable, as a word that captures read, and that a worker sees. Any thread.
class ProcessContext {
 public:
  using Listener = void (*)(std::uint64_t number) noexcept;
  using Find = std::uint64_t (*)();

  // Of this process: for captures.
  [[nodiscard]] static STROBE_SIGNAL_SAFE std::uint64_t labels() noexcept {
    return labels_.load(std::memory_order_acquire);
  }
  // Samples have these labels from now on. One thread at a time.
  static void SetLabels(std::uint64_t number) noexcept {
    labels_.store(number, std::memory_order_seq_cst);
    if (const Listener listener = listener_.load(std::memory_order_seq_cst)) listener(number);
  }
  // From now on calls listener(number) at each change, and at once.
  static void Tell(Listener listener) noexcept {
    listener_.store(listener, std::memory_order_seq_cst);
    // A change meanwhile may have been told before.
    std::uint64_t told = 0;
    do {
      told = labels_.load(std::memory_order_seq_cst);
      listener(told);
    } while (told != labels_.load(std::memory_order_seq_cst));
  }

  // In a worker: `find` finds those of the program that the calling thread serves.
  static void Serve(Find find) noexcept { served_.store(find, std::memory_order_release); }
  // For what a collector samples itself: of the program that the calling thread serves, else of
  // this process.
  [[nodiscard]] static std::uint64_t LabelsOfProgram() noexcept {
    const Find find = served_.load(std::memory_order_acquire);
    return find != nullptr ? find() : labels();
  }

 private:
  static constinit inline std::atomic<std::uint64_t> labels_{kNoContext};
  static constinit inline std::atomic<Listener> listener_{nullptr};
  static constinit inline std::atomic<Find> served_{nullptr};
};

}  // namespace internal
}  // namespace strobe
