// ThreadSlot: one registered thread's state.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"
#include "strobe/core/stats.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/unwind/walk_memo.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// What passes between one provider and one thread's captures.
struct ProviderCell {
  std::atomic<std::int64_t> requested{
      0};  // asked for and not yet served; the collector adds, the handler takes
  std::atomic<std::int64_t> credited{0};  // all that was served or extended since the attachment
  std::atomic<std::int64_t> carried{
      0};  // credited, but no record could be written: rides on the next one
  std::atomic<std::int64_t> last_capture_cpu_ns{-1};
  std::int64_t residual = 0;   // set at the detachment
  std::uint64_t received = 0;  // by the collector; wraps

  // The collector's. A weight comes out of a ring: whatever it is, this must be defined.
  void Receive(std::int64_t weight) { received += static_cast<std::uint64_t>(weight); }
  // At the detachment: from now on `received` counts from what was credited until now, which is
  // returned. What a capture adds to that which ends later, no account has.
  std::int64_t Settle() {
    const std::int64_t settled = credited.load(std::memory_order_relaxed);
    received -= static_cast<std::uint64_t>(settled);
    return settled;
  }
  // Thereafter: of what was credited, that has not come. Less than 0 where a record came that a
  // later capture wrote.
  [[nodiscard]] std::int64_t missing() const { return static_cast<std::int64_t>(-received); }

  // For a new attachment, while no capture can begin.
  void Reset() {
    requested.store(0, std::memory_order_relaxed);
    credited.store(0, std::memory_order_relaxed);
    carried.store(0, std::memory_order_relaxed);
    last_capture_cpu_ns.store(-1, std::memory_order_relaxed);
    residual = 0;
    received = 0;
  }
};

// Whether a mask, signal n by bit n - 1, holds the signal; none holds 0, which is no signal.
constexpr bool HasSignal(std::uint64_t mask, int signal) {
  return signal > 0 && (mask >> (signal - 1) & 1) != 0;
}

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
  // Of `captures`, when the collector last saw to the slot's memory. Here for the room.
  std::atomic<std::uint32_t> seen_captures{0};
  std::atomic<std::int64_t> time_ns{0};

  void AddTo(Stats& stats) const {
    for (std::size_t i = 0; i < drops.size(); ++i)
      stats.drops[i] += drops[i].load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < ends.size(); ++i)
      stats.stack_ends[i] += ends[i].load(std::memory_order_relaxed);
    stats.handler_time_ns += time_ns.load(std::memory_order_relaxed);
  }
  // But for `captures`, by which the slot's memory is known to be in use.
  void Clear() {
    for (auto& drop : drops) drop.store(0, std::memory_order_relaxed);
    for (auto& end : ends) end.store(0, std::memory_order_relaxed);
    time_ns.store(0, std::memory_order_relaxed);
  }
};

// A slot lives in a SlotArena and is never freed, only used again. `Traits` is the Profiler's.
template <class Traits>
struct ThreadSlot : ThreadLink {
  using Cells = std::array<ProviderCell, Traits::Providers::kCount>;

  // Data plane. Whether a capture may begin, and whether one is under way: the thread stores the
  // second before it reads the first, and the one that detaches stores the first before reading the
  // second (all sequentially consistent), so one of the two always sees the other.
  std::atomic<bool> is_active{false};
  std::atomic<bool> is_capturing{false};
  // Set where the collector does not know the stack of the last record, so that the next one must
  // share nothing with it.
  std::atomic<bool> memo_is_stale{true};
  // Set where a walk had no table: the ring may be full of the stacks of such. The collector clears
  // it when it has emptied the ring.
  std::atomic<bool> has_slices{false};
  // By provider: whether a capture notes the thread's CPU clock. Here, and not in the cells, for
  // the room that they would take.
  std::array<std::atomic<bool>, Traits::Providers::kCount> wants_cpu_clock{};
  // The collector's, or under the registry's mutex while the slot is free: whether the captures
  // that it has seen left memory in use.
  std::atomic<bool> has_memory{false};
  StackBounds stack;
  std::uint64_t thread_id = 0;
  typename Traits::Ring ring;
  Cells cells;
  CaptureCounters counters;
  WalkMemo* memo = nullptr;  // in memory that the first walk commits
  // What the thread is doing: the number of a set of labels, copied into each record; kNoContext
  // for none. The thread itself writes it.
  std::atomic<std::uint64_t> context{kNoContext};

  // Control plane, under the slot's control mutex while the slot is live.
  typename Traits::Providers::ThreadStates states;
  typename Traits::Platform::Timer timer;
  bool is_attached = false;
  bool needs_finish =
      // Attached in this session, and not yet accounted for: only then are the ring's records of
      // this session.
      false;
  // The registration is over, or its end has begun: no session may attach the slot any more. The
  // slot's own thread writes it.
  std::atomic<bool> is_ending{true};
  std::atomic<bool> was_timer_refused{false};
  std::uint8_t unblocked_signal = 0;  // by us, to be blocked again
  // Signals that the thread blocks, signal n by bit n - 1, as of its registration or of the
  // collector's last look; and whether the session's is one of them: then nothing is sent, for it
  // would stay pending, or a sigwait would return it.
  std::atomic<bool> blocks_signal{false};
  std::uint64_t blocked_signals = 0;
  std::int64_t attach_cpu_ns = 0;

  // The registry's, under its mutex.
  std::uint32_t live_index = 0;

  // The collector's.
  static constexpr std::uint32_t kNoKey = 0xFFFFFFFF;
  std::uint32_t thread_key = kNoKey;  // the aggregator's
  std::string name;                   // written before the slot is attached

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

  [[nodiscard]] static bool IsAwaited(const ThreadLink& link) {
    const auto& slot = static_cast<const ThreadSlot&>(link);
    return slot.is_requested() && slot.is_active.load(std::memory_order_relaxed);
  }
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
