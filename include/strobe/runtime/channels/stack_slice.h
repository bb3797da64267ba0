// StackSlice: what the collector needs to finish a walk for which a capture had no table. The ring
// carries it.
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
#include "strobe/core/thread_info.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The most bytes of one stack. Most stacks are shorter, and a longer slice leaves less of the ring
// for other records.
inline constexpr std::size_t kMaxSliceStackBytes = 16 * 1024;

// Writes the slice of a pending walk. Data plane.
template <StackMemory M>
class SliceWriter {
 public:
  // The slice begins at the innermost frame's stack, if all of it from there on fits into
  // `room_bytes`. Else it begins where the walk stopped.
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

  // The most bytes that Write writes.
  [[nodiscard]] std::size_t bytes() const { return sizeof(SliceHeader) + max_bytes_; }

  // Writes the slice to `output`, which is aligned to 8 bytes and has room for bytes(). Returns the
  // number of bytes written. `kept_number` is the SliceHeader's, `own` the thread's own stack.
  STROBE_SIGNAL_SAFE std::size_t Write(std::byte* output, std::uint64_t kept_number,
                                       const StackBounds& own) const {
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
                                                  .is_exact = stop_.is_exact ? 1U : 0U,
                                                  .kept_number = kept_number,
                                                  .own_low = own.low,
                                                  .own_high = own.high};
    if (registers_.has_general_registers()) {
      for (std::size_t i = 0; i < NativeRegisters::kGeneralRegisters; ++i)
        header->general[i] = registers_.general_register(i);
    }
    header->is_cut = bytes == max_bytes && base + bytes != memory_.end() ? 1U : 0U;
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

// The number by which a StackTable keeps the stack; 0 if none does.
inline std::uint64_t KeptNumberOf(std::span<const std::byte> slice) {
  SliceHeader header;
  if (slice.size() < sizeof(header)) return 0;
  std::memcpy(&header, slice.data(), sizeof(header));
  return header.kept_number;
}

// Continues the walk of a record with `slice`, by `unwinder`. Adds the frames that it finds to
// `frames`, which are the record's, up to `max_frames` in all. The result is pending if a table is
// still missing. If the walk needs more of the stack than the slice had room for, it is truncated.
// Collector only.
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
  if (walk.end == StackEnd::kBroken && header.is_cut != 0) walk.end = StackEnd::kTruncated;
  const StackBounds own{.low = header.own_low, .high = header.own_high};
  if (walk.end == StackEnd::kComplete && own.IsLeftAt(walk.stop.sp))
    walk.end = StackEnd::kCoroutine;
  frames.resize(walk.count);
  return walk;
}

}  // namespace internal
}  // namespace strobe
