// WalkMemo: one thread's last walk, so that the next walk need not repeat what has not changed.
//
// A caller's frame follows from the state (pc, sp, fp) in which a walk reaches the callee, and from
// two words of the stack. So if a walk reaches a state of the last walk, and the words that were
// read from there on are unchanged, then the rest of the stack is the same by construction.
// MemoCheck compares those words; IncrementalWalk walks until it reaches such a state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

template <class Registers, StackMemory M, class Step>
class MemoCheck;
template <class Registers, StackMemory M, class Step>
class IncrementalWalk;

// Belongs to one thread's captures; the collector may only request a Clear. All zero bytes are an
// empty memo, so that the memo can lie in memory that the first sample commits. Stacks beyond
// kMaxFrames, and stacks whose end is not found, are walked without the memo.
class WalkMemo {
 public:
  static constexpr std::size_t kMaxFrames = 1024;

  // Forgets the last walk: the next one shares nothing.
  STROBE_SIGNAL_SAFE void Clear() noexcept { count_ = 0; }

  // The memo's own memory, for a walk that shares nothing. Forgets the last walk.
  STROBE_SIGNAL_SAFE std::span<std::uint8_t> TakeForCopy() noexcept {
    Clear();
    return {reinterpret_cast<std::uint8_t*>(frames_.data()), sizeof(frames_)};
  }

  // A walk begins on the stack that ends at `top`. `source` is a number for the rules that the walk
  // goes by. Forgets the last walk if either has changed.
  STROBE_SIGNAL_SAFE void Begin(std::uint64_t source, Address top) noexcept {
    if (source_ != source || top_ != top) count_ = 0;
    source_ = source;
    top_ = top;
  }

  // Writes the addresses of the outermost frames, leaf first: those that a walk has just shared.
  STROBE_SIGNAL_SAFE void CopyRoots(std::span<Address> leaf_first) const noexcept {
    const Frame* frame = frames_.data() + (kEnd - leaf_first.size());
    for (Address& address : leaf_first) {
      // As FrameState::code_address.
      address = frame->pc - ((frame->slot & kIsExact) != 0 ? 0 : 1);
      ++frame;
    }
  }

  // Frames of the last walk.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  template <class Registers, StackMemory M, class Step>
  friend class MemoCheck;
  template <class Registers, StackMemory M, class Step>
  friend class IncrementalWalk;

  static constexpr std::size_t kEnd = kMaxFrames;
  // The flags in Frame::slot. Each moves the slot by 4 GiB or more, to where no stack reaches. So
  // one comparison finds the frames that only depend on the word that pc was read from.
  // kNeedsStep: only a step can tell that the callee still leads to this frame.
  static constexpr std::uint32_t kNeedsStep = std::uint32_t{1} << 29;
  // kIsFpLive: a frame beyond depends on fp.
  static constexpr std::uint32_t kIsFpLive = std::uint32_t{1} << 30;
  // kIsExact: FrameState::is_exact.
  static constexpr std::uint32_t kIsExact = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kMaxSlot = kNeedsStep - 1;

  // A frame, and how the walk reached it. Until Complete, the slot is that of sp, the only flag is
  // kIsExact, and the rule is what the step gave.
  struct Frame {
    Address pc;
    Address fp;
    // The word that pc was read from, in words from the end of the stack memory; and flags.
    std::uint32_t slot;
    UnwindRule rule;  // that led here from the callee, or Unknown
  };

  // Completes a frame.
  static void Complete(Frame& frame, bool is_fp_live) noexcept {
    const bool needs_step = !frame.rule.is_frame() || frame.rule.ra_words() == 0;
    if (needs_step) frame.rule = UnwindRule::Unknown();
    frame.slot += frame.rule.ra_words();
    frame.slot |= (needs_step ? kNeedsStep : 0) | (is_fp_live ? kIsFpLive : 0);
  }
  // True if the callee of a completed frame depends on fp.
  static bool IsFpLiveBefore(const Frame& frame) noexcept {
    return frame.rule.kind() != UnwindRule::Kind::kFromSp ||
           (frame.rule.fp_words() == 0 && (frame.slot & kIsFpLive) != 0);
  }
  static_assert(sizeof(Frame) == 24);

  static Address SpOf(const Frame& frame, Address top) noexcept {
    return top - (Address{frame.slot & kMaxSlot} - frame.rule.ra_words()) * 8;
  }

  // True if a walk in this state continues as the last walk did from `frame`.
  template <class Registers>
  static bool IsAt(const FrameState<Registers>& state, const Frame& frame, Address top) noexcept {
    return SpOf(frame, top) == state.registers.sp && frame.pc == state.registers.pc &&
           ((frame.slot & kIsExact) != 0) == state.is_exact &&
           ((frame.slot & kIsFpLive) == 0 || frame.fp == state.registers.fp);
  }

  std::uint64_t source_;  // of the last walk's rules
  Address top_;           // of the last walk's stack
  std::uint32_t count_;
  // Of these, leaf first, are not complete yet: most never need to be.
  std::uint32_t as_walked_;
  bool is_end_known_;  // the outermost frame has no caller, whatever its registers are
  // The last walk's frames are the last `count_`, leaf first: the root stays in its place while the
  // leaves change. A walk under way writes its own frames from the front.
  std::array<Frame, kMaxFrames> frames_;
};
static_assert(sizeof(WalkMemo) <= 32 * 1024);

}  // namespace internal
}  // namespace strobe
