// SampleChannel: all data that pass between one thread's captures and the thread that drains them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/base/address.h"
#include "strobe/base/cache_line.h"
#include "strobe/base/shared_flag.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/sample_context.h"
#include "strobe/core/stats.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The state of one amount, shared by its provider and one thread's captures.
struct ProviderCell {
  std::atomic<std::int64_t> requested{0};  // not yet served; the collector adds, the handler takes
  std::atomic<std::int64_t> credited{0};   // all that was served or extended since the attachment
  // Served, but in no record, and not credited; the handler adds. No other stack gets it. If a
  // clock tells the provider's amounts, the residual has it. Else the collector takes it, for
  // [lost].
  std::atomic<std::int64_t> lost{0};

  // Resets the cell for a new attachment, while no capture can begin.
  void Reset() {
    requested.store(0, std::memory_order_relaxed);
    credited.store(0, std::memory_order_relaxed);
    lost.store(0, std::memory_order_relaxed);
  }
};

// What a capture notes if the collector wants to know when and where the thread was interrupted.
// Written by the thread's captures, read by the collector.
struct CaptureNote {
  std::atomic<std::int64_t> cpu_ns{-1};  // the thread's CPU clock; -1 before the first note
  // The registers, one word so that both are of one capture: the low half of the stack pointer, in
  // words, and the distance from there to the frame pointer, in words. 0 if that is not above.
  std::atomic<std::uint64_t> registers{0};

  struct Registers {
    Address sp = 0;
    Address fp = 0;
  };
  STROBE_SIGNAL_SAFE static std::uint64_t Pack(const Registers& registers) {
    const Address distance = registers.fp - registers.sp;
    if (distance % 8 != 0 || distance / 8 > kHalf) return 0;
    return (registers.sp / 8 & kHalf) << 32 | distance / 8;
  }
  // Both 0 if they are not known. The stack pointer is one that agrees with `sp` in the other half.
  static Registers Unpack(std::uint64_t packed, Address sp) {
    const Address fp_words = packed & kHalf;
    if (fp_words == 0) return {};
    const Address noted_sp = (sp & ~(kHalf * 8)) | (packed >> 32) * 8;
    return {.sp = noted_sp, .fp = noted_sp + fp_words * 8};
  }

  void Reset() {
    cpu_ns.store(-1, std::memory_order_relaxed);
    registers.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr Address kHalf = 0xFFFFFFFF;
};

// Waits until `flag` is false. Returns false if that takes longer than `timeout_ns`.
bool WaitUntilClear(const SharedFlag& flag, std::int64_t timeout_ns);

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
// A channel lives in a ChannelArena and is never freed, only reused, because a late signal may
// still find it. `Traits` is the Profiler's.
template <class Traits>
struct alignas(kCacheLineBytes) SampleChannel {
  using Cells = std::array<ProviderCell, Traits::Providers::kCellCount>;

  ChannelToken token;  // its use changes with each attachment
  // is_active: a capture may begin. is_capturing: a capture is under way. A capture stores
  // is_capturing before it reads is_active. A detachment stores is_active before it reads
  // is_capturing. All these accesses are sequentially consistent, so at least one side sees the
  // other's store.
  SharedFlag is_active{false};
  SharedFlag is_capturing{false};
  // Set if the collector does not have the stack of the last record: the next record must share
  // nothing with that stack.
  SharedFlag memo_is_stale{true};
  // Set if a walk lacked a table: slices of such walks may fill the ring. The collector clears it
  // when it has emptied the ring.
  SharedFlag has_slices{false};
  // Whether captures write the note, at the cost of one system call each. The collector sets it,
  // and the first capture with a record clears it. While it is false, the note is of a record.
  SharedFlag wants_note{false};
  // Set if an interruption came during a capture. The capture that finds it set serves the request.
  SharedFlag was_interrupted{false};
  // The providers whose events count, provider n by bit n: those of the session that the channel is
  // attached to. A capture reads it, like is_active, after it stores is_capturing. is_active does
  // not suffice: it is also false for a moment while the collector frees memory.
  std::atomic<std::uint8_t> open_events{0};
  // Whether the captures that the collector has seen left memory in use. Used by the collector, or
  // under the registry's mutex while the channel is free.
  SharedFlag has_memory{false};
  StackBounds stack;
  std::uint64_t thread_id = 0;
  // Each record gets a copy.
  ThreadContext context;
  // The weight of one expiry of the thread's timer. Written before the timer starts.
  std::atomic<std::int64_t> timer_period_ns{0};

  alignas(kCacheLineBytes) typename Traits::Ring ring;
  alignas(kCacheLineBytes) Cells cells;
  CaptureNote note;
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

}  // namespace internal
}  // namespace strobe
