// StackSlice: the rest of a walk that a capture had no table for, on its way through the ring to
// the collector, which finishes it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwinder.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Of one stack. Most stacks are shorter, and what such a record takes is taken from the ring's
// other records.
inline constexpr std::size_t kMaxSliceStackBytes = 16 * 1024;

// A slice to be written, for a walk that is pending. Data plane.
template <StackMemory M>
class SliceWriter {
 public:
  // From the innermost frame's stack, if that and all above fit into `room_bytes`, or else from
  // where the walk stopped.
  STROBE_SIGNAL_SAFE SliceWriter(const NativeRegisters& registers, const FrameStop& stop,
                                 const M& memory, std::size_t room_bytes)
      : registers_(registers), stop_(stop), memory_(memory) {
    const std::size_t room =
        room_bytes < sizeof(SliceHeader) ? 0 : room_bytes - sizeof(SliceHeader);
    max_bytes_ = std::min(room, kMaxSliceStackBytes) / sizeof(Address) * sizeof(Address);
    base_ = BaseOf(registers.sp);
    if (base_ > BaseOf(stop.sp) || memory.end() - base_ > max_bytes_) base_ = BaseOf(stop.sp);
    if (base_ < memory.end()) max_bytes_ = std::min<std::size_t>(max_bytes_, memory.end() - base_);
  }

  // At most.
  [[nodiscard]] std::size_t bytes() const { return sizeof(SliceHeader) + max_bytes_; }

  // Writes it to `output`, which is aligned to 8 bytes and has room for bytes(); returns how many
  // it took, and in `is_whole` whether it goes to the stack's end.
  STROBE_SIGNAL_SAFE std::size_t Write(std::byte* output, bool& is_whole) const {
    std::size_t bytes = 0;
    Address word = 0;
    // The red zone may begin below the stack.
    Address base = base_;
    while (base < base_ + kRedZoneBytes && !memory_.ReadWord(base, word)) base += sizeof(word);
    const std::size_t max_bytes = max_bytes_ - std::min<std::size_t>(max_bytes_, base - base_);
    for (; bytes < max_bytes && memory_.ReadWord(base + bytes, word); bytes += sizeof(word)) {
      std::memcpy(output + sizeof(SliceHeader) + bytes, &word, sizeof(word));
    }
    auto* const header = new (output) SliceHeader{.pc = stop_.pc,
                                                  .sp = stop_.sp,
                                                  .fp = stop_.fp,
                                                  .lr = stop_.lr,
                                                  .innermost_pc = registers_.pc,
                                                  .innermost_sp = registers_.sp,
                                                  .innermost_fp = registers_.fp,
                                                  .base = base,
                                                  .is_exact = stop_.is_exact ? 1U : 0U};
    if (registers_.has_general_registers()) {
      for (std::size_t i = 0; i < NativeRegisters::kGeneralRegisters; ++i)
        header->general[i] = registers_.general_register(i);
    }
    is_whole = base + bytes == memory_.end();
    return sizeof(*header) + bytes;
  }

 private:
  static Address BaseOf(Address sp) { return (sp - kRedZoneBytes + 7) & ~Address{7}; }

  const NativeRegisters& registers_;
  const FrameStop& stop_;
  const M& memory_;
  Address base_ = 0;
  std::size_t max_bytes_ = 0;
};

// Goes on with the walk of a record whose slice is `slice`, by `unwinder`, and adds what it comes
// to to `frames`, which are the record's, up to `max_frames`. Where a table is still not there, it
// says so; a slice that does not go to the stack's end ends broken. Collector.
template <ResumableUnwinder U>
WalkResult FinishWalk(const U& unwinder, std::span<const std::byte> slice,
                      std::vector<Address>& frames, std::size_t max_frames) {
  SliceHeader header;
  if (slice.size() < sizeof(header) || frames.empty()) return {frames.size(), StackEnd::kBroken};
  std::memcpy(&header, slice.data(), sizeof(header));
  NativeRegisters innermost;
  innermost.pc = header.innermost_pc;
  innermost.sp = header.innermost_sp;
  innermost.fp = header.innermost_fp;
  const NativeRegisters::GeneralRegisters general(header.general.data());
  innermost.set_general_registers(&general);
  FrameState<NativeRegisters> from{.registers = innermost, .innermost = &innermost};
  from.is_exact = header.is_exact != 0;
  from.registers.pc = header.pc;
  from.registers.sp = header.sp;
  from.registers.fp = header.fp;
  from.registers.set_link_register(header.lr);

  const std::size_t recorded =
      frames.size() - 1;  // the frame that the walk stopped at is found once more
  frames.resize(std::max(max_frames, frames.size()));
  const CopiedStackMemory memory(header.base, slice.subspan(sizeof(header)));
  WalkResult walk = unwinder.Unwind(from, memory, std::span(frames).subspan(recorded));
  walk.count += recorded;
  frames.resize(walk.count);
  return walk;
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
