// SampleChannel: all data that pass between one thread's captures and the thread that drains them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/base/cache_line.h"
#include "strobe/base/visibility.h"
#include "strobe/core/sample_context.h"
#include "strobe/core/stats.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/unwind/walk_memo.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// The state of one amount, shared by its provider and one thread's captures.
struct ProviderCell {
  std::atomic<std::int64_t> requested{0};  // not yet served; the collector adds, the handler takes
  std::atomic<std::int64_t> credited{0};   // all that was served or extended since the attachment
  std::atomic<std::int64_t> carried{0};    // credited, but in no record; the next one carries it
  std::atomic<std::int64_t> last_capture_cpu_ns{-1};

  // Resets the cell for a new attachment, while no capture can begin.
  void Reset() {
    requested.store(0, std::memory_order_relaxed);
    credited.store(0, std::memory_order_relaxed);
    carried.store(0, std::memory_order_relaxed);
    last_capture_cpu_ns.store(-1, std::memory_order_relaxed);
  }
};

// Waits until `flag` is false. Returns false if that takes longer than `timeout_ns`.
bool WaitUntilClear(const std::atomic<bool>& flag, std::int64_t timeout_ns);

// Adds without a locked instruction. Only the one thread that writes the counter may call it.
template <class T>
void AddByOwner(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

// Written by the thread's own captures, read by stats().
struct CaptureCounters {
  std::atomic<std::uint32_t> captures{0};  // handler calls
  // One for each reason before kUnreadable. Only the collector counts the other reasons.
  std::array<std::atomic<std::uint32_t>, static_cast<std::size_t>(DropReason::kUnreadable)> drops{};
  std::array<std::atomic<std::uint32_t>, kStackEndCount> ends{};
  // The value of `captures` when the collector last checked the channel's memory. It is here
  // because there is room for it.
  std::atomic<std::uint32_t> seen_captures{0};
  std::atomic<std::int64_t> time_ns{0};

  void AddTo(Stats& stats) const {
    for (std::size_t i = 0; i < drops.size(); ++i)
      stats.drops[i] += drops[i].load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < ends.size(); ++i)
      stats.stack_ends[i] += ends[i].load(std::memory_order_relaxed);
    stats.handler_time_ns += time_ns.load(std::memory_order_relaxed);
  }
  // Clears all but `captures`, which shows whether the channel's memory is in use.
  void Clear() {
    for (auto& drop : drops) drop.store(0, std::memory_order_relaxed);
    for (auto& end : ends) end.store(0, std::memory_order_relaxed);
    time_ns.store(0, std::memory_order_relaxed);
  }
};

// A block of bytes without addresses: it finds its ring and its memo by their distance. So a copy
// of the bytes of all three can be drained elsewhere, even in another process.
//
// A channel lives in a SlotArena and is never freed, only reused, because a late signal may still
// find it. `Traits` is the Profiler's.
template <class Traits>
struct alignas(kCacheLineBytes) SampleChannel {
  using Cells = std::array<ProviderCell, Traits::Providers::kCellCount>;

  SlotToken token;  // its use changes with each attachment
  // is_active: a capture may begin. is_capturing: a capture is under way. A capture stores
  // is_capturing before it reads is_active. A detachment stores is_active before it reads
  // is_capturing. All these accesses are sequentially consistent, so at least one side sees the
  // other's store.
  std::atomic<bool> is_active{false};
  std::atomic<bool> is_capturing{false};
  // Set if the collector does not have the stack of the last record: the next record must share
  // nothing with that stack.
  std::atomic<bool> memo_is_stale{true};
  // Set if a walk lacked a table: slices of such walks may fill the ring. The collector clears it
  // when it has emptied the ring.
  std::atomic<bool> has_slices{false};
  // By cell: whether a capture notes the thread's CPU clock. It is not in the cells, because it
  // would take more room there.
  std::array<std::atomic<bool>, Traits::Providers::kCellCount> wants_cpu_clock{};
  // The providers whose events count, provider n by bit n: those of the session that the channel is
  // attached to. A capture reads it, like is_active, after it stores is_capturing. is_active does
  // not suffice: it is also false for a moment while the collector frees memory.
  std::atomic<std::uint8_t> open_events{0};
  // Whether the captures that the collector has seen left memory in use. Used by the collector, or
  // under the registry's mutex while the channel is free.
  std::atomic<bool> has_memory{false};
  StackBounds stack;
  std::uint64_t thread_id = 0;
  // Each record gets a copy.
  ThreadContext context;
  // The weight of one expiry of the thread's timer. Written before the timer starts.
  std::atomic<std::int64_t> timer_period_ns{0};

  alignas(kCacheLineBytes) typename Traits::Ring ring;
  alignas(kCacheLineBytes) Cells cells;
  CaptureCounters counters;

  // The channels of the chunk that have records, channel n by bit n. Used in the chunk's first
  // channel only. A page of its own would be a sixth of what the chunk's channels take.
  std::atomic<std::uint64_t> marks{0};
  std::uint32_t ring_room_bytes = 0;  // of the memory reserved for the ring
  std::uint32_t memo_distance = 0;    // from the channel's address to the memo's

  // What the thread's walks remember, or their copies of stacks that are not its own. The first
  // walk commits the memory. Signal-safe.
  [[nodiscard]] WalkMemo& memo() noexcept {
    return *reinterpret_cast<WalkMemo*>(reinterpret_cast<std::uintptr_t>(this) + memo_distance);
  }

  // True if captures have touched memory that has not been given back.
  [[nodiscard]] bool holds_memory() const {
    return has_memory.load(std::memory_order_relaxed) ||
           counters.captures.load(std::memory_order_relaxed) !=
               counters.seen_captures.load(std::memory_order_relaxed);
  }

  // True if a request has not been served. Signal-safe.
  [[nodiscard]] bool is_requested() const {
    for (const ProviderCell& cell : cells) {
      if (cell.requested.load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
