// CollectorCounters: the collector's part of stats().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "strobe/aggregate/overflows.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/core/stats.h"
#include "strobe/core/unregistered_threads.h"
#include "strobe/runtime/code/code_counters.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Counts over all sessions. Only the collector writes, except out_of_memory, which any thread
// writes. Any thread reads.
struct CollectorCounters {
  CodeCounters code;
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> measured_samples{0};  // of the first enabled provider
  std::atomic<std::int64_t> measured_ns{0};  // time of that provider's clock, over all threads
  std::atomic<std::uint64_t> drains{0};
  std::atomic<std::int64_t> cpu_ns{0};
  std::atomic<std::int64_t> process_cpu_ns{0};
  std::atomic<std::int64_t> registered_cpu_ns{0};   // of settled accounts
  std::atomic<std::uint64_t> stacks_overflowed{0};  // see SetOverflows
  std::atomic<std::uint64_t> labels_overflowed{0};
  std::atomic<std::uint64_t> moments_dropped{0};
  std::atomic<std::uint64_t> spans_overflowed{0};
  std::atomic<std::uint64_t> threads_unlisted{0};
  std::atomic<std::uint64_t> dumps_failed{0};  // before an output had them: see Stats
  std::atomic<std::uint64_t> dumps_skipped{0};
  std::atomic<std::uint64_t> unreadable{0};
  std::atomic<std::uint64_t> no_memory{0};        // see DropReason
  std::atomic<std::uint64_t> periods_dropped{0};  // for want of memory
  std::atomic<std::int64_t> amount_dropped{0};    // of no_memory and periods_dropped
  std::atomic<std::uint64_t> out_of_memory{0};    // see Stats
  std::atomic<std::uint64_t> waits_abandoned{0};
  std::atomic<std::uint64_t> polls_put_off{0};
  std::atomic<std::uint64_t> waits_walked{0};  // see Stats
  std::atomic<std::uint64_t> waits_interrupted{0};
  std::atomic<std::uint64_t> waits_hidden{0};
  std::atomic<std::uint64_t> instants{0};
  std::atomic<std::uint64_t> threads_at_instants{0};  // now
  std::atomic<std::uint64_t> handler_replaced{0};
  std::atomic<std::uint64_t> periods_extended{0};
  std::atomic<std::uint64_t> aggregator_bytes{0};
  std::array<std::atomic<std::uint64_t>, kStackEndCount>
      deferred_ends{};  // of stacks that the collector finished
  std::array<std::atomic<std::uint64_t>, kStackEndCount> wait_ends{};  // of `waits_walked`

  // Of the last period.
  void SetUnregistered(UnregisteredThreads unregistered) {
    const std::lock_guard lock(mutex_);
    unregistered_ = std::move(unregistered);
  }
  [[nodiscard]] UnregisteredThreads unregistered() const {
    const std::lock_guard lock(mutex_);
    return unregistered_;
  }

  // What the limits of the continuous recording have kept out.
  void SetOverflows(const Overflows& overflows) {
    stacks_overflowed.store(overflows.stacks, std::memory_order_relaxed);
    labels_overflowed.store(overflows.labels, std::memory_order_relaxed);
    moments_dropped.store(overflows.moments, std::memory_order_relaxed);
    spans_overflowed.store(overflows.spans, std::memory_order_relaxed);
    threads_unlisted.store(overflows.threads, std::memory_order_relaxed);
  }
  [[nodiscard]] Overflows overflows() const {
    return {.stacks = stacks_overflowed.load(std::memory_order_relaxed),
            .labels = labels_overflowed.load(std::memory_order_relaxed),
            .moments = moments_dropped.load(std::memory_order_relaxed),
            .spans = spans_overflowed.load(std::memory_order_relaxed),
            .threads = threads_unlisted.load(std::memory_order_relaxed)};
  }

  // Runs `body`. If memory runs out in it, counts that and returns false. Callable from any thread.
  template <class Body>
  [[nodiscard]] bool HasMemoryFor(Body&& body) {
    if (internal::HasMemoryFor(body)) return true;
    out_of_memory.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Adds the counters to `stats`, and sets the measured rate.
  void AddTo(Stats& stats) const {
    const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
    stats.samples += read(samples) + read(waits_walked);
    stats.waits_walked += read(waits_walked);
    stats.waits_interrupted += read(waits_interrupted);
    stats.waits_hidden += read(waits_hidden);
    stats.measured_samples += read(measured_samples);
    stats.measured_ns += read(measured_ns);
    stats.drains += read(drains);
    stats.collector_cpu_ns += read(cpu_ns);
    stats.process_cpu_ns += read(process_cpu_ns);
    stats.dumps_failed += read(dumps_failed);
    stats.dumps_skipped += read(dumps_skipped);
    overflows().SetIn(stats);
    stats.drops[static_cast<std::size_t>(DropReason::kUnreadable)] += read(unreadable);
    stats.drops[static_cast<std::size_t>(DropReason::kNoMemory)] += read(no_memory);
    stats.exports_dropped += read(periods_dropped);
    stats.amount_dropped += read(amount_dropped);
    stats.out_of_memory += read(out_of_memory);
    for (std::size_t i = 0; i < deferred_ends.size(); ++i) {
      stats.stack_ends[i] += read(deferred_ends[i]) + read(wait_ends[i]);
      stats.stacks_deferred += read(deferred_ends[i]);
    }
    stats.waits_abandoned += read(waits_abandoned);
    stats.polls_put_off += read(polls_put_off);
    stats.instants += read(instants);
    stats.threads_at_instants += read(threads_at_instants);
    stats.handler_replaced += read(handler_replaced);
    stats.periods_extended += read(periods_extended);
    stats.memory_bytes += read(aggregator_bytes);
    stats.unregistered = unregistered();
    code.AddTo(stats);
    if (stats.measured_ns > 0)
      stats.measured_rate_hz = static_cast<double>(stats.measured_samples) * 1e9 /
                               static_cast<double>(stats.measured_ns);
  }

 private:
  mutable std::mutex mutex_;
  UnregisteredThreads unregistered_;
};

}  // namespace internal
}  // namespace strobe
