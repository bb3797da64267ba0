// OutsideWalk: walks the stack of a thread that waits, on another thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"
#include "strobe/runtime/capture/stack_walk.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A frame pointer, or a link register, that is not known. It lies in no stack and in no code, so a
// walk that needs it ends there, and all other walks find what the thread itself would find.
inline constexpr Address kUnknownRegister = 0x8000'0000'0000'0001;

// Bytes of a stack that are copied at first, and, if a walk needs more, at most. Most stacks of
// waiting threads are shorter than the first copy, and a copy costs less the shorter it is.
inline constexpr std::size_t kFirstCopyBytes = 4 * 1024;
inline constexpr std::size_t kMaxCopyBytes = 256 * 1024;

// Begin, then Walk as often as needed. The results hold for a thread that has not run meanwhile.
// Used by the collector.
template <class Traits>
class OutsideWalk {
 public:
  using Unwinder = typename Traits::Unwinder;

  // The thread that owns that stack waits with these registers. It may be on another stack: a
  // coroutine's, or an alternate one.
  void Begin(Address pc, Address sp, const StackBounds& own) {
    // The thread's captures move `low` of a stack that grows.
    const bool is_own =
        own.grows ? sp < own.high && own.high - sp <= kMaxStackReachBytes : own.Holds(sp);
    own_ = own;
    registers_ = {};
    registers_.pc = pc;
    registers_.sp = sp;
    registers_.set_link_register(kUnknownRegister);
    stack_end_ = is_own ? own.high : sp + kMaxCopyBytes;
    base_ = (sp - kRedZoneBytes) & ~Address{7};
    if (is_own && !own.grows) base_ = std::max(base_, own.low);
    copied_bytes_ = 0;
    Copy(kFirstCopyBytes);
    // The red zone of a stack that grows may not be there yet, or that of another stack at all.
    if (copied_bytes_ != 0) return;
    base_ = sp & ~Address{7};
    Copy(kFirstCopyBytes);
  }

  // False if the stack could not be read at all.
  [[nodiscard]] bool has_copy() const { return copied_bytes_ != 0; }

  // Walks with that frame pointer. Sets frames().
  WalkResult Walk(const UnwindModules* tables, std::size_t max_frames,
                  Address fp = kUnknownRegister) {
    registers_.fp = fp;
    if (frames_.size() < max_frames) frames_.resize(max_frames);
    while (true) {
      const CopiedStackMemory memory(base_, std::as_bytes(std::span(copy_).first(copied_bytes_)));
      WalkResult walk = MakeUnwinder<Unwinder>(tables).Unwind(registers_, memory,
                                                              std::span(frames_).first(max_frames));
      count_ = walk.count;
      if (walk.end == StackEnd::kComplete && own_.IsLeftAt(walk.stop.sp))
        walk.end = StackEnd::kCoroutine;
      if (walk.end != StackEnd::kBroken || !HasMore()) return walk;
      Copy(copied_bytes_ * kGrowth);
    }
  }

  // Of the last walk, leaf first.
  [[nodiscard]] std::span<const Address> frames() const { return std::span(frames_).first(count_); }

 private:
  static constexpr std::size_t kGrowth = 8;

  // True if a larger copy would have more of the stack.
  [[nodiscard]] bool HasMore() const {
    return copied_bytes_ != 0 && copied_bytes_ == wanted_bytes_ && wanted_bytes_ < MostBytes();
  }
  [[nodiscard]] std::size_t MostBytes() const {
    return std::min<std::size_t>(stack_end_ - base_, kMaxCopyBytes);
  }

  // Copies that much of the stack, or all that may be copied of it.
  void Copy(std::size_t bytes) {
    wanted_bytes_ = std::min(bytes, MostBytes());
    if (copy_.size() < wanted_bytes_) copy_.resize(wanted_bytes_);
    copied_bytes_ = Traits::Platform::ReadMemory(base_, std::span(copy_).first(wanted_bytes_));
  }

  NativeRegisters registers_;
  StackBounds own_;
  Address base_ = 0;  // of the copy
  Address stack_end_ = 0;
  std::size_t wanted_bytes_ = 0;  // by the last Copy
  std::size_t copied_bytes_ = 0;
  std::vector<std::uint8_t> copy_;
  std::vector<Address> frames_;
  std::size_t count_ = 0;
};

}  // namespace internal
}  // namespace strobe
