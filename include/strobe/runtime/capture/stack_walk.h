// The walk of a sampled thread's stack into a RecordDraft: of its own stack, a copy of it, or a
// stack that is not its own. Data plane.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/page.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/capture/record_draft.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/runtime/channels/sample_channel.h"
#include "strobe/unwind/fetched_stack_memory.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Makes an unwinder. An unwinder that needs tables gets `modules`, the published tables.
template <class Unwinder>
STROBE_SIGNAL_SAFE Unwinder MakeUnwinder(const UnwindModules* modules) {
  if constexpr (std::constructible_from<Unwinder, const UnwindModules*>) {
    return Unwinder(modules);
  } else {
    return Unwinder();
  }
}

// Writes the result of a walk into the record.
template <class Traits, StackMemory M>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void TakeWalk(const WalkResult& walk,
                                                      const ChannelArena<Traits>& arena,
                                                      SampleChannel<Traits>& channel,
                                                      const NativeRegisters& registers,
                                                      const M& memory, RecordDraft& draft) {
  RecordHeader& header = draft.header();
  header.frame_count = static_cast<std::uint16_t>(walk.count);
  header.shared_count = static_cast<std::uint16_t>(walk.shared);
  header.end = walk.end;
  if (!walk.is_pending) return;
  channel.has_slices.store(true, std::memory_order_relaxed);
  const FrameStop stop = walk.stop;
  AddSlice(arena, channel, registers, stop, memory, draft);
}

// Walks a stack that is not the thread's own: a coroutine's or an alternate one. No other walk
// makes system calls. The memory reader lies in the memo, beside its copies of the stack, because
// the interrupted thread's stack may be small.
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE void WalkForeign(const ChannelArena<Traits>& arena,
                                                      SampleChannel<Traits>& channel,
                                                      const NativeRegisters& registers,
                                                      RecordDraft& draft) {
  using Memory = FetchedStackMemory<&Traits::Platform::ReadStack>;
  const std::span<std::uint8_t> room = channel.memo().TakeForCopy();
  const Memory& memory = *new (room.data()) Memory(channel.stack, room.subspan(sizeof(Memory)));
  const auto unwinder =
      MakeUnwinder<typename Traits::Unwinder>(arena.code().tables.load(std::memory_order_seq_cst));
  WalkResult walk = unwinder.Unwind(registers, memory, FramesOf(arena, draft));
  if (walk.end == StackEnd::kComplete && channel.stack.IsLeftAt(walk.stop.sp))
    walk.end = StackEnd::kCoroutine;
  TakeWalk(walk, arena, channel, registers, memory, draft);
}

// The most by which one sample extends a stack's bounds. If a stack has grown farther, the next
// samples extend the bounds further.
inline constexpr Address kMaxStackGrowthBytes = Address{8} << 20;
// The farthest below its bounds that a stack is taken to reach. Linux by itself maps nothing within
// that distance of the initial stack; farther below may be other stacks.
inline constexpr Address kMaxStackReachBytes = Address{128} << 20;

// Extends the bounds of a stack that has grown down to `sp`; true if they then hold `sp`. Reads all
// memory in between once, by calls that cannot fault. If some of it is unmapped, `sp` is on another
// stack.
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE bool HasGrownTo(SampleChannel<Traits>& channel, Address sp) {
  const Address low = PageOf(sp);
  if (low >= channel.stack.low || channel.stack.low - low > kMaxStackReachBytes) return false;
  const Address until = channel.stack.low - std::min(channel.stack.low - low, kMaxStackGrowthBytes);
  const std::span<std::uint8_t> room = channel.memo().TakeForCopy();
  while (channel.stack.low > until) {
    const std::span<std::uint8_t> piece =
        room.first(std::min<std::size_t>(room.size(), channel.stack.low - until));
    if (Traits::Platform::ReadStack(channel.stack.low - piece.size(), piece) != piece.size())
      return false;
    channel.stack.low -= piece.size();
  }
  return channel.stack.low == low;
}

// Walks the thread's own stack, or a copy of it. An incremental unwinder reuses the frames that the
// last walk shares with this one.
template <class Traits, StackMemory M>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void WalkInto(const ChannelArena<Traits>& arena,
                                                      SampleChannel<Traits>& channel,
                                                      const NativeRegisters& registers,
                                                      const M& memory, RecordDraft& draft) {
  const auto unwinder =
      MakeUnwinder<typename Traits::Unwinder>(arena.code().tables.load(std::memory_order_seq_cst));
  if constexpr (IncrementalUnwinder<typename Traits::Unwinder>) {
    if (channel.memo_is_stale.load(std::memory_order_relaxed)) {
      channel.memo_is_stale.store(false, std::memory_order_relaxed);
      channel.memo().Clear();
    }
    TakeWalk(unwinder.Unwind(registers, memory, channel.memo(), FramesOf(arena, draft)), arena,
             channel, registers, memory, draft);
  } else {
    TakeWalk(unwinder.Unwind(registers, memory, FramesOf(arena, draft)), arena, channel, registers,
             memory, draft);
  }
}
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE void WalkOwn(const ChannelArena<Traits>& arena,
                                                  SampleChannel<Traits>& channel,
                                                  const CaptureTarget& target, RecordDraft& draft) {
  const NativeRegisters& registers = *target.registers;
  // A capture by another thread walks a copy. The thread's own capture (CaptureHere) has none.
  if constexpr (Traits::Platform::kCopiesStacks) {
    if (target.stack != nullptr) return WalkInto(arena, channel, registers, *target.stack, draft);
  }
  const LiveStackMemory memory(std::max(registers.sp - kRedZoneBytes, channel.stack.low),
                               channel.stack.high);
  WalkInto(arena, channel, registers, memory, draft);
}

// Walks the stack into the record.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void Walk(const ChannelArena<Traits>& arena,
                                                  SampleChannel<Traits>& channel,
                                                  const CaptureTarget& target, RecordDraft& draft) {
  if constexpr (!Traits::Platform::kCopiesStacks) {
    const Address sp = target.registers->sp;
    const bool is_foreign =
        target.is_on_alternate_stack ||
        (!channel.stack.Holds(sp) && !(channel.stack.grows && HasGrownTo(channel, sp)));
    if (is_foreign) return WalkForeign(arena, channel, *target.registers, draft);
  }
  WalkOwn(arena, channel, target, draft);
}

}  // namespace internal
}  // namespace strobe
