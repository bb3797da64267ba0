// SampleChannel: all that passes between one thread's captures and the one that drains them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/base/cache_line.h"
#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"
#include "strobe/core/stats.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/unwind/walk_memo.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// What passes of one amount between its provider and one thread's captures.
struct ProviderCell {
  std::atomic<std::int64_t> requested{
      0};  // asked for and not yet served; the collector adds, the handler takes
  std::atomic<std::int64_t> credited{0};  // all that was served or extended since the attachment
  std::atomic<std::int64_t> carried{
      0};  // credited, but no record could be written: rides on the next one
  std::atomic<std::int64_t> last_capture_cpu_ns{-1};

  // For a new attachment, while no capture can begin.
  void Reset() {
    requested.store(0, std::memory_order_relaxed);
    credited.store(0, std::memory_order_relaxed);
    carried.store(0, std::memory_order_relaxed);
    last_capture_cpu_ns.store(-1, std::memory_order_relaxed);
  }
};

// Waits until `flag` is false; false where that takes longer than `timeout_ns`.
bool WaitUntilClear(const std::atomic<bool>& flag, std::int64_t timeout_ns);

// Relaxed adding by the one thread that writes: no locked instruction.
template <class T>
void AddByOwner(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

// Written by the thread's own captures, read by stats().
struct CaptureCounters {
  std::atomic<std::uint32_t> captures{0};  // handler calls
  // The reasons before kUnreadable, which is the collector's alone.
  std::array<std::atomic<std::uint32_t>, static_cast<std::size_t>(DropReason::kUnreadable)> drops{};
  std::array<std::atomic<std::uint32_t>, kStackEndCount> ends{};
  // Of `captures`, when the collector last saw to the channel's memory. Here for the room.
  std::atomic<std::uint32_t> seen_captures{0};
  std::atomic<std::int64_t> time_ns{0};

  void AddTo(Stats& stats) const {
    for (std::size_t i = 0; i < drops.size(); ++i)
      stats.drops[i] += drops[i].load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < ends.size(); ++i)
      stats.stack_ends[i] += ends[i].load(std::memory_order_relaxed);
    stats.handler_time_ns += time_ns.load(std::memory_order_relaxed);
  }
  // But for `captures`, by which the channel's memory is known to be in use.
  void Clear() {
    for (auto& drop : drops) drop.store(0, std::memory_order_relaxed);
    for (auto& end : ends) end.store(0, std::memory_order_relaxed);
    time_ns.store(0, std::memory_order_relaxed);
  }
};

// One block of bytes without addresses: its ring and its memo it knows by their distance. So the
// bytes of all three, copied together, can be drained elsewhere, also in another process.
// A channel lives in a SlotArena and is never freed, only used again, because a late signal may
// still find it. `Traits` is the Profiler's.
template <class Traits>
struct alignas(kCacheLineBytes) SampleChannel {
  using Cells = std::array<ProviderCell, Traits::Providers::kCellCount>;

  SlotToken token;  // its use changes with each attachment
  // Whether a capture may begin, and whether one is under way: the thread stores the second before
  // it reads the first, and the one that detaches stores the first before reading the second (all
  // sequentially consistent), so one of the two always sees the other.
  std::atomic<bool> is_active{false};
  std::atomic<bool> is_capturing{false};
  // Set where the collector does not know the stack of the last record, so that the next one must
  // share nothing with it.
  std::atomic<bool> memo_is_stale{true};
  // Set where a walk had no table: the ring may be full of the stacks of such. The collector clears
  // it when it has emptied the ring.
  std::atomic<bool> has_slices{false};
  // By cell: whether a capture notes the thread's CPU clock. Here, and not in the cells, for
  // the room that they would take.
  std::array<std::atomic<bool>, Traits::Providers::kCellCount> wants_cpu_clock{};
  // Whose events count, provider n by bit n: those of the session that the channel is attached to.
  // A capture looks at it as at is_active, which is also false for a moment while the collector
  // frees memory.
  std::atomic<std::uint8_t> open_events{0};
  // The collector's, or under the registry's mutex while the channel is free: whether the captures
  // that it has seen left memory in use.
  std::atomic<bool> has_memory{false};
  StackBounds stack;
  std::uint64_t thread_id = 0;
  // What the thread is doing: the number of a set of labels, copied into each record; kNoContext
  // for none. The thread itself writes it.
  std::atomic<std::uint64_t> context{kNoContext};
  std::uint32_t memo_distance = 0;  // the memo's address, counted from the channel's own

  alignas(kCacheLineBytes) typename Traits::Ring ring;
  alignas(kCacheLineBytes) Cells cells;
  CaptureCounters counters;

  // Which channels of the chunk have records, channel n by bit n; in the chunk's first channel
  // alone. Here for the room: a page of its own would be a sixth of what the chunk's channels take.
  std::atomic<std::uint64_t> marks{0};
  std::uint64_t ring_room_bytes = 0;  // of the memory that is there for the ring

  // What the thread's walks remember, or copy of stacks that are not its own; in memory that the
  // first walk commits. Signal-safe.
  [[nodiscard]] WalkMemo& memo() noexcept {
    return *reinterpret_cast<WalkMemo*>(reinterpret_cast<std::uintptr_t>(this) + memo_distance);
  }

  // Whether captures have touched memory that was not given back.
  [[nodiscard]] bool holds_memory() const {
    return has_memory.load(std::memory_order_relaxed) ||
           counters.captures.load(std::memory_order_relaxed) !=
               counters.seen_captures.load(std::memory_order_relaxed);
  }

  // Whether a request has not been served. Signal-safe.
  [[nodiscard]] bool is_requested() const {
    for (const ProviderCell& cell : cells) {
      if (cell.requested.load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
