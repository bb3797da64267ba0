// RecordDraft: a record that a capture is writing into a channel's ring. Data plane.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/core/sample_context.h"
#include "strobe/core/stack.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/runtime/channels/sample_channel.h"
#include "strobe/runtime/channels/stack_slice.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A capture reserves room in the ring and writes the header. The walk writes the frames, and
// perhaps a slice. Then the capture writes the words in between, and commits the record. A draft
// that is not committed leaves the ring as it was.
struct RecordDraft {
  std::byte* bytes = nullptr;  // nullptr if the ring has no room
  std::size_t head_bytes = 0;  // bytes before the frames
  // If a StackKeeper keeps the stack, the number by which the collector finishes it. Else 0.
  std::uint64_t kept_number = 0;

  [[nodiscard]] RecordHeader& header() const { return *reinterpret_cast<RecordHeader*>(bytes); }
};

// The optional words of a record; 0 or empty for none.
struct RecordWordValues {
  SampleContext context;
  std::int64_t time_ns = 0;
  std::uint64_t skip = 0;
};

// The time of a sample that is taken now; 0 if the session keeps no times.
template <class Traits>
STROBE_SIGNAL_SAFE std::int64_t SampleTimeNs(const ChannelArena<Traits>& arena) {
  return arena.keeps_times.load(std::memory_order_relaxed) ? typename Traits::Clock{}.MonotonicNs()
                                                           : 0;
}

// Returns the header of a record with these words and weights; each weight is the amount of one
// cell. Sets `words` to the number of words after the header. The loop counts them, because
// counting the bits later may be a function call.
template <class Traits>
STROBE_SIGNAL_SAFE RecordHeader MakeHeader(const ChannelArena<Traits>& arena,
                                           const RecordWordValues& values,
                                           std::span<const std::int64_t> weights,
                                           std::size_t& words) {
  constexpr auto kColumns = Traits::Providers::CellColumns();
  std::uint32_t amounts = 0;
  const std::uint32_t flags = (values.context.word != kNoContext ? kRecordHasContext : 0U) |
                              (values.time_ns != 0 ? kRecordHasTime : 0U) |
                              (values.skip != 0 ? kRecordHasSkip : 0U) |
                              (values.context.trace.empty() ? 0U : kRecordHasTrace);
  words = (values.context.word != kNoContext ? 1 : 0) + (values.time_ns != 0 ? 1 : 0) +
          (values.skip != 0 ? 1 : 0) + (values.context.trace.empty() ? 0 : TraceContext::kWords);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    amounts |= std::uint32_t{1} << kColumns[i];
    ++words;
  }
  return {.module_generation = arena.code().generation.load(std::memory_order_relaxed),
          .amounts = static_cast<std::uint16_t>(amounts),
          .flags = static_cast<std::uint8_t>(flags)};
}

// Writes the words that the header announces to `next`.
STROBE_SIGNAL_SAFE inline void WriteWords(std::byte* next, const RecordWordValues& values,
                                          std::span<const std::int64_t> weights) {
  for (const std::uint64_t value :
       {values.context.word, static_cast<std::uint64_t>(values.time_ns), values.skip}) {
    if (value == 0) continue;
    std::memcpy(next, &value, sizeof(value));
    next += sizeof(value);
  }
  if (!values.context.trace.empty()) {
    std::memcpy(next, &values.context.trace, sizeof(values.context.trace));
    next += sizeof(values.context.trace);
  }
  for (const std::int64_t weight : weights) {
    if (weight == 0) continue;
    std::memcpy(next, &weight, sizeof(weight));
    next += sizeof(weight);
  }
}

// The room for the draft's frames.
template <class Traits>
STROBE_SIGNAL_SAFE std::span<Address> FramesOf(const ChannelArena<Traits>& arena,
                                               const RecordDraft& draft) {
  return {reinterpret_cast<Address*>(draft.bytes + draft.head_bytes),
          arena.max_frames.load(std::memory_order_relaxed)};
}

// Adds the slice that the collector needs to continue a pending walk. May move the record.
template <class Traits, StackMemory M>
[[gnu::noinline]] STROBE_SIGNAL_SAFE void AddSlice(const ChannelArena<Traits>& arena,
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
  draft.header().slice_bytes = static_cast<std::uint32_t>(
      slice.Write(draft.bytes + written_bytes, draft.kept_number, channel.stack));
}

// A number of a capture that is under way, which no other capture of the arena has; not 0, and less
// than 2^63.
template <class Traits>
STROBE_SIGNAL_SAFE std::uint64_t NumberOfCapture(const SampleChannel<Traits>& channel) {
  return std::uint64_t{channel.token.index} << 32 |
         channel.counters.captures.load(std::memory_order_relaxed);
}

}  // namespace internal
}  // namespace strobe
