// CaptureSample: all that the handler does for a sample: registers -> stack -> ring record. Data
// plane.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <tuple>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/core/sample_context.h"
#include "strobe/core/stats.h"
#include "strobe/platform/capture_target.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/capture/record_draft.h"
#include "strobe/runtime/capture/stack_walk.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/runtime/channels/sample_channel.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of each thread's handler calls, one in this many is timed.
inline constexpr std::uint32_t kTimedCaptureInterval = 16;

// The weight of the timer's expiries that an interruption stands for. A forged signal may have any
// number of expiries, so the product is unsigned.
template <class Traits>
STROBE_SIGNAL_SAFE std::int64_t TimerWeight(const SampleChannel<Traits>& channel,
                                            const CaptureTarget& target) {
  return static_cast<std::int64_t>(
      static_cast<std::uint64_t>(target.timer_expiries) *
      static_cast<std::uint64_t>(channel.timer_period_ns.load(std::memory_order_relaxed)));
}

// Sets `weights` to what each cell is due: `timer_weight` and requests. Takes the requests, and
// credits the cells. False if there was neither an expiry nor a request.
template <class Cells>
STROBE_SIGNAL_SAFE bool TakeWeights(Cells& cells, std::size_t timer_cell, std::int64_t timer_weight,
                                    std::array<std::int64_t, std::tuple_size_v<Cells>>& weights) {
  bool is_due = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::int64_t weight = i == timer_cell ? timer_weight : 0;
    if (cells[i].requested.load(std::memory_order_relaxed) != 0)
      weight += cells[i].requested.exchange(0, std::memory_order_acq_rel);
    if (weight != 0) cells[i].credited.fetch_add(weight, std::memory_order_relaxed);
    is_due |= weight != 0;
    weights[i] = weight;
  }
  return is_due;
}

// Notes that credited weights got no record.
template <class Cells>
STROBE_SIGNAL_SAFE void LoseWeights(Cells& cells, std::span<const std::int64_t> weights) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (weights[i] == 0) continue;
    cells[i].credited.fetch_sub(weights[i], std::memory_order_relaxed);
    cells[i].lost.fetch_add(weights[i], std::memory_order_relaxed);
  }
}

// Keeps the stack of a record, or the number by which the collector finishes it. The frames that
// the record shares with the last one are written behind its own, where the draft has room for them
// and the record ends.
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE void KeepStackOf(const ChannelArena<Traits>& arena,
                                                      SampleChannel<Traits>& channel,
                                                      const RecordDraft& draft, std::uint64_t skip,
                                                      StackKeeper& keeper) {
  const RecordHeader& header = draft.header();
  std::span<Address> frames = FramesOf(arena, draft);
  if (header.slice_bytes != 0) {
    keeper.number = keeper.table.AddPending(draft.kept_number);
    return;
  }
  const std::size_t count = std::size_t{header.frame_count} + header.shared_count;
  if (header.shared_count > 0)
    channel.memo().CopyRoots(frames.subspan(header.frame_count, header.shared_count));
  const std::size_t skipped = SkippedFrames(skip, count, header.end);
  if (skipped < count)
    keeper.number = keeper.table.Add(frames.first(count).subspan(skipped), header.end);
}

// Walks the thread's stack into a record of its ring. Returns false, and sets `drop` to the reason,
// if there is no record.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE bool WriteRecord(ChannelArena<Traits>& arena,
                                                         SampleChannel<Traits>& channel,
                                                         const CaptureTarget& target,
                                                         std::span<const std::int64_t> weights,
                                                         std::uint64_t skip, StackKeeper* keeper,
                                                         DropReason& drop) {
  if (target.registers == nullptr) {
    drop = DropReason::kNoRegisters;
    return false;
  }
  const RecordWordValues values{.context = channel.context.Read().In(ProcessContext::labels()),
                                .time_ns = SampleTimeNs(arena),
                                .skip = skip};
  std::size_t words = 0;
  const RecordHeader begun = MakeHeader(arena, values, weights, words);
  RecordDraft draft{.bytes = channel.ring.Reserve(
                        RecordBytes(words, arena.max_frames.load(std::memory_order_relaxed))),
                    .head_bytes = RecordBytes(words, 0),
                    .kept_number = keeper == nullptr ? 0 : NumberOfCapture(channel)};
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
  WriteWords(draft.bytes + sizeof(header), values, weights);
  // The collector counts the ends of the stacks that it finishes.
  if (header.slice_bytes == 0)
    AddByOwner<std::uint32_t>(channel.counters.ends[static_cast<std::size_t>(header.end)], 1);
  if (keeper != nullptr) KeepStackOf(arena, channel, draft, skip, *keeper);
  channel.ring.Commit(RecordBytes(words, header.frame_count, header.slice_bytes));
  arena.Mark(channel);
  return true;
}

template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE void WriteNote(SampleChannel<Traits>& channel,
                                                    const NativeRegisters& registers,
                                                    bool is_recorded) {
  channel.note.registers.store(CaptureNote::Pack({.sp = registers.sp, .fp = registers.fp}),
                               std::memory_order_release);
  channel.note.cpu_ns.store(Traits::Platform::ThreadCpuTimeNs(channel.thread_id),
                            std::memory_order_release);
  if (is_recorded) channel.wants_note.store(false, std::memory_order_release);
}

// The amount of each cell.
template <class Traits>
using CellWeights = std::array<std::int64_t, Traits::Providers::kCellCount>;

// Records one sample of the thread's stack, which stands for these credited weights. The stack
// begins `skip` frames above the leaf.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void RecordWeights(
    ChannelArena<Traits>& arena, SampleChannel<Traits>& channel, const CaptureTarget& target,
    const CellWeights<Traits>& weights, std::uint64_t skip, StackKeeper* keeper) {
  DropReason drop{};
  const bool is_recorded = WriteRecord<Traits>(arena, channel, target, weights, skip, keeper, drop);
  if (!is_recorded) [[unlikely]] {
    AddByOwner<std::uint32_t>(channel.counters.drops[static_cast<std::size_t>(drop)], 1);
    LoseWeights(channel.cells, weights);
  }
  if (channel.wants_note.load(std::memory_order_relaxed) && target.registers != nullptr)
      [[unlikely]]
    WriteNote<Traits>(channel, *target.registers, is_recorded);
}

// Records one sample for all providers that have requested one of this channel.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void ServeChannel(ChannelArena<Traits>& arena,
                                                          SampleChannel<Traits>& channel,
                                                          const CaptureTarget& target,
                                                          std::uint64_t skip = 0) {
  CellWeights<Traits> weights{};
  if (TakeWeights(channel.cells, target.token.provider, TimerWeight(channel, target), weights))
    RecordWeights(arena, channel, target, weights, skip, nullptr);
}

// True if the channel belongs to the calling thread. A signal's payload may be forged, or sent to
// the wrong thread. Where the platform copies stacks, the caller chooses the channel.
template <class Traits>
STROBE_SIGNAL_SAFE bool IsOfThisThread(const SampleChannel<Traits>& channel) {
  if constexpr (Traits::Platform::kCopiesStacks) return true;
  for (const RegistrationLink* link = RegistrationLinks(); link != nullptr; link = link->next) {
    if (link->token == &channel.token) return true;
  }
  return false;
}

// The nesting rule: an interruption during a capture of its thread adds a request. That capture
// serves the request at its end (CaptureHere), or the next interruption does.
template <class Traits>
STROBE_SIGNAL_SAFE void AddRequest(SampleChannel<Traits>& channel, std::size_t cell,
                                   std::int64_t weight) {
  if (weight != 0 && cell < channel.cells.size())
    channel.cells[cell].requested.fetch_add(weight, std::memory_order_acq_rel);
  channel.was_interrupted.store(true, std::memory_order_relaxed);
}

// A CaptureEntry::Function; `context` is the ChannelArena.
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE bool CaptureSample(void* context,
                                                        const CaptureTarget& target) {
  auto& arena = *static_cast<ChannelArena<Traits>*>(context);
  SampleChannel<Traits>* channel = arena.Find(target.token.index);
  if (channel == nullptr || !IsOfThisThread<Traits>(*channel)) return false;
  const bool is_nested = channel->is_capturing.exchange(true, std::memory_order_seq_cst);
  const bool is_live =
      channel->is_active.load(std::memory_order_seq_cst) && channel->token.use == target.token.use;
  if (is_nested) [[unlikely]] {
    if (is_live) AddRequest(*channel, target.token.provider, TimerWeight(*channel, target));
    return is_live;
  }
  if (is_live && target.is_late) [[unlikely]] {
    if (target.token.provider < channel->cells.size())
      channel->cells[target.token.provider].requested.exchange(0, std::memory_order_acq_rel);
  } else if (is_live) {
    const std::uint32_t call = channel->counters.captures.load(std::memory_order_relaxed);
    channel->counters.captures.store(call + 1, std::memory_order_relaxed);
    const bool is_timed =
        call % kTimedCaptureInterval == kTimedCaptureInterval / 2;  // not the first, which is cold
    const typename Traits::Clock clock{};
    const std::int64_t begin_ns = is_timed ? clock.MonotonicNs() : 0;
    ServeChannel<Traits>(arena, *channel, target);
    if (is_timed)
      AddByOwner<std::int64_t>(channel->counters.time_ns,
                               (clock.MonotonicNs() - begin_ns) * kTimedCaptureInterval);
  }
  channel->is_capturing.store(false, std::memory_order_release);
  return is_live;
}

}  // namespace internal
}  // namespace strobe
