// CaptureSample: all that the handler does for a sample: registers -> stack -> ring record. Data
// plane.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <tuple>
#include <utility>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/sample_channel.h"
#include "strobe/runtime/slot_arena.h"
#include "strobe/runtime/stack_slice.h"
#include "strobe/unwind/fetched_stack_memory.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwinder.h"
#include "strobe/unwind/walk_memo.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Of each thread's handler calls, one in this many is timed.
inline constexpr std::uint32_t kTimedCaptureInterval = 16;

// Sets `weights` to what each cell is due: expiries of the timer, requests and carried weight.
// Takes the requests. False if there was neither an expiry nor a request.
template <class Cells>
STROBE_SIGNAL_SAFE bool TakeWeights(Cells& cells, const CaptureTarget& target,
                                    std::array<std::int64_t, std::tuple_size_v<Cells>>& weights) {
  bool is_due = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::int64_t weight = i == target.token.provider ? target.timer_weight : 0;
    if (cells[i].requested.load(std::memory_order_relaxed) != 0)
      weight += cells[i].requested.exchange(0, std::memory_order_acq_rel);
    if (weight != 0) cells[i].credited.fetch_add(weight, std::memory_order_relaxed);
    is_due |= weight != 0;
    weights[i] = weight + cells[i].carried.load(std::memory_order_relaxed);
  }
  return is_due;
}

// Makes an unwinder. An unwinder that needs tables gets `modules`, the published tables.
template <class Unwinder>
STROBE_SIGNAL_SAFE Unwinder MakeUnwinder(const UnwindModules* modules) {
  if constexpr (std::constructible_from<Unwinder, const UnwindModules*>) {
    return Unwinder(modules);
  } else {
    return Unwinder();
  }
}

// A record that is being written into a slot's ring.
struct RecordDraft {
  std::byte* bytes = nullptr;  // nullptr if the ring has no room
  std::size_t head_bytes = 0;  // bytes before the frames
  bool is_whole = true;        // whether the collector can complete its stack

  [[nodiscard]] RecordHeader& header() const { return *reinterpret_cast<RecordHeader*>(bytes); }
};

// The room for the draft's frames.
template <class Traits>
STROBE_SIGNAL_SAFE std::span<Address> FramesOf(const SlotArena<Traits>& arena,
                                               const RecordDraft& draft) {
  return {reinterpret_cast<Address*>(draft.bytes + draft.head_bytes),
          arena.max_frames.load(std::memory_order_relaxed)};
}

// Adds the slice that the collector needs to continue a pending walk. May move the record.
template <class Traits, StackMemory M>
STROBE_SIGNAL_SAFE STROBE_NOINLINE void AddSlice(const SlotArena<Traits>& arena,
                                                 SampleChannel<Traits>& channel,
                                                 const NativeRegisters& registers,
                                                 const FrameStop& stop, const M& memory,
                                                 RecordDraft& draft) {
  const std::size_t written_bytes = draft.head_bytes + draft.header().frame_count * sizeof(Address);
  const std::size_t most_bytes = Traits::Ring::MaxRecordBytes(arena.ring_bytes());
  const SliceWriter slice(registers, stop, memory,
                          most_bytes - std::min(most_bytes, written_bytes));
  const std::byte* const written =
      std::exchange(draft.bytes, channel.ring.Reserve(written_bytes + slice.bytes()));
  if (draft.bytes == nullptr) return;
  std::memmove(draft.bytes, written, written_bytes);
  draft.header().slice_bytes =
      static_cast<std::uint32_t>(slice.Write(draft.bytes + written_bytes, draft.is_whole));
}

// Writes the result of a walk into the record.
template <class Traits, StackMemory M>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void TakeWalk(const WalkResult& walk,
                                                      const SlotArena<Traits>& arena,
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

// For a walk that began outside the thread's own stack: true if its outermost frame is outside that
// stack, too. False if the unwinder does not report that frame's stack pointer, or the system does
// not report the stack's bounds.
STROBE_SIGNAL_SAFE inline bool IsOffStack(const StackBounds& own, Address sp) {
  return sp != 0 && !own.empty() && (sp < own.low || sp > own.high);
}

// Walks a stack that is not the thread's own: a coroutine's or an alternate one. No other walk
// makes system calls. The memory reader lies in the memo, beside its copies of the stack, because
// the interrupted thread's stack may be small.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_NOINLINE void WalkForeign(const SlotArena<Traits>& arena,
                                                    SampleChannel<Traits>& channel,
                                                    const NativeRegisters& registers,
                                                    RecordDraft& draft) {
  using Memory = FetchedStackMemory<&Traits::Platform::ReadStack>;
  const std::span<std::uint8_t> room = channel.memo().Lend();
  const Memory& memory = *new (room.data()) Memory(channel.stack, room.subspan(sizeof(Memory)));
  const auto unwinder =
      MakeUnwinder<typename Traits::Unwinder>(arena.code.tables.load(std::memory_order_seq_cst));
  WalkResult walk = unwinder.Unwind(registers, memory, FramesOf(arena, draft));
  if (walk.end == StackEnd::kComplete && IsOffStack(channel.stack, walk.stop.sp))
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
STROBE_SIGNAL_SAFE STROBE_NOINLINE bool HasGrownTo(SampleChannel<Traits>& channel, Address sp) {
  constexpr Address kPageBytes = 4096;  // the smallest of any system
  const Address low = sp & ~(kPageBytes - 1);
  if (low >= channel.stack.low || channel.stack.low - low > kMaxStackReachBytes) return false;
  const Address until = channel.stack.low - std::min(channel.stack.low - low, kMaxStackGrowthBytes);
  const std::span<std::uint8_t> room = channel.memo().Lend();
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
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void WalkInto(const SlotArena<Traits>& arena,
                                                      SampleChannel<Traits>& channel,
                                                      const NativeRegisters& registers,
                                                      const M& memory, RecordDraft& draft) {
  const auto unwinder =
      MakeUnwinder<typename Traits::Unwinder>(arena.code.tables.load(std::memory_order_seq_cst));
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
STROBE_SIGNAL_SAFE STROBE_NOINLINE void WalkOwn(const SlotArena<Traits>& arena,
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
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void Walk(const SlotArena<Traits>& arena,
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

// The optional words of a record; 0 for none.
struct RecordWordValues {
  std::uint64_t context = 0;
  std::uint64_t skip = 0;
};

// Returns the header of a record with these words and weights; each weight is the amount of one
// cell. Sets `words` to the number of words after the header. The loop counts them, because
// counting the bits later may be a function call.
template <class Traits>
STROBE_SIGNAL_SAFE RecordHeader MakeHeader(const SlotArena<Traits>& arena,
                                           const RecordWordValues& values,
                                           std::span<const std::int64_t> weights,
                                           std::size_t& words) {
  constexpr auto kColumns = Traits::Providers::CellColumns();
  std::uint32_t amounts = 0;
  words = (values.context != 0 ? 1 : 0) + (values.skip != 0 ? 1 : 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    amounts |= std::uint32_t{1} << kColumns[i];
    ++words;
  }
  return {.module_generation = arena.code.generation.load(std::memory_order_relaxed),
          .amounts = static_cast<std::uint16_t>(amounts),
          .flags = static_cast<std::uint8_t>((values.context != 0 ? kRecordHasContext : 0) |
                                             (values.skip != 0 ? kRecordHasSkip : 0))};
}

// Writes the words that the header announces to `next`. Amounts are zero unless `is_counted`.
STROBE_SIGNAL_SAFE inline void WriteWords(std::byte* next, const RecordWordValues& values,
                                          std::span<const std::int64_t> weights, bool is_counted) {
  for (const std::uint64_t value : {values.context, values.skip}) {
    if (value == 0) continue;
    std::memcpy(next, &value, sizeof(value));
    next += sizeof(value);
  }
  for (const std::int64_t weight : weights) {
    if (weight == 0) continue;
    const std::int64_t amount = is_counted ? weight : 0;
    std::memcpy(next, &amount, sizeof(amount));
    next += sizeof(amount);
  }
}

// Walks the thread's stack into a record of its ring. Returns false, and sets `drop` to the reason,
// if there is no record, or the record has no weight.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE bool WriteRecord(SlotArena<Traits>& arena,
                                                         SampleChannel<Traits>& channel,
                                                         const CaptureTarget& target,
                                                         std::span<const std::int64_t> weights,
                                                         std::uint64_t skip, DropReason& drop) {
  if (target.registers == nullptr) {
    drop = DropReason::kNoRegisters;
    return false;
  }
  const RecordWordValues values{.context = channel.context.load(std::memory_order_relaxed),
                                .skip = skip};
  std::size_t words = 0;
  const RecordHeader begun = MakeHeader(arena, values, weights, words);
  RecordDraft draft{.bytes = channel.ring.Reserve(
                        RecordBytes(words, arena.max_frames.load(std::memory_order_relaxed))),
                    .head_bytes = RecordBytes(words, 0)};
  if (draft.bytes != nullptr) {
    new (draft.bytes) RecordHeader(begun);
    Walk(arena, channel, target, draft);
  }
  if (draft.bytes == nullptr) {
    drop = channel.has_slices.load(std::memory_order_relaxed) ? DropReason::kNoTable
                                                              : DropReason::kRingFull;
    return false;
  }
  const RecordHeader& header = draft.header();
  WriteWords(draft.bytes + sizeof(header), values, weights, draft.is_whole);
  if (!draft.is_whole) drop = DropReason::kNoTable;
  // The collector counts the ends of the stacks that it finishes.
  if (header.slice_bytes == 0)
    AddByOwner<std::uint32_t>(channel.counters.ends[static_cast<std::size_t>(header.end)], 1);
  channel.ring.Commit(RecordBytes(words, header.frame_count, header.slice_bytes));
  arena.Mark(channel);
  return draft.is_whole;
}

// Records one sample for all providers that are due a sample of this channel. The stack begins
// `skip` frames above the leaf.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void ServeSlot(SlotArena<Traits>& arena,
                                                       SampleChannel<Traits>& channel,
                                                       const CaptureTarget& target,
                                                       std::uint64_t skip = 0) {
  std::array<std::int64_t, Traits::Providers::kCellCount> weights{};
  if (!TakeWeights(channel.cells, target, weights)) return;
  DropReason drop{};
  const bool is_recorded = WriteRecord<Traits>(arena, channel, target, weights, skip, drop);
  if (!is_recorded)
    AddByOwner<std::uint32_t>(channel.counters.drops[static_cast<std::size_t>(drop)], 1);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    ProviderCell& cell = channel.cells[i];
    cell.carried.store(is_recorded ? 0 : weights[i], std::memory_order_relaxed);
    if (is_recorded && weights[i] != 0 &&
        channel.wants_cpu_clock[i].load(std::memory_order_relaxed)) {
      cell.last_capture_cpu_ns.store(Traits::Platform::ThreadCpuTimeNs(channel.thread_id),
                                     std::memory_order_release);
    }
  }
}

// True if the channel belongs to the calling thread. A signal's payload may be forged, or sent to
// the wrong thread. Where the platform copies stacks, the caller chooses the channel.
template <class Traits>
STROBE_SIGNAL_SAFE bool IsOfThisThread(const SampleChannel<Traits>& channel) {
  if constexpr (Traits::Platform::kCopiesStacks) return true;
  for (const ThreadLink* link = ThreadLinks(); link != nullptr; link = link->next) {
    if (link->token == &channel.token) return true;
  }
  return false;
}

// The nesting rule: an interruption or an event during a capture of its thread adds a request. That
// capture serves the request at its end (CaptureHere), or the next capture does.
template <class Traits>
STROBE_SIGNAL_SAFE void AddRequest(SampleChannel<Traits>& channel, std::size_t cell,
                                   std::int64_t weight) {
  if (weight != 0 && cell < channel.cells.size())
    channel.cells[cell].requested.fetch_add(weight, std::memory_order_acq_rel);
}

// A CaptureEntry::Function; `context` is the SlotArena.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_NOINLINE bool CaptureSample(void* context, const CaptureTarget& target) {
  auto& arena = *static_cast<SlotArena<Traits>*>(context);
  SampleChannel<Traits>* channel = arena.Find(target.token.index);
  if (channel == nullptr || !IsOfThisThread<Traits>(*channel)) return false;
  const bool is_nested = channel->is_capturing.exchange(true, std::memory_order_seq_cst);
  const bool is_live =
      channel->is_active.load(std::memory_order_seq_cst) && channel->token.use == target.token.use;
  if (is_nested) [[unlikely]] {
    if (is_live) AddRequest(*channel, target.token.provider, target.timer_weight);
    return is_live;
  }
  if (is_live) {
    const std::uint32_t call = channel->counters.captures.load(std::memory_order_relaxed);
    channel->counters.captures.store(call + 1, std::memory_order_relaxed);
    const bool is_timed =
        call % kTimedCaptureInterval == kTimedCaptureInterval / 2;  // not the first, which is cold
    const typename Traits::Clock clock{};
    const std::int64_t begin_ns = is_timed ? clock.MonotonicNs() : 0;
    ServeSlot<Traits>(arena, *channel, target);
    if (is_timed)
      AddByOwner<std::int64_t>(channel->counters.time_ns,
                               (clock.MonotonicNs() - begin_ns) * kTimedCaptureInterval);
  }
  channel->is_capturing.store(false, std::memory_order_release);
  return is_live;
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
