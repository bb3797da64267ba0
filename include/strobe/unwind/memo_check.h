// MemoCheck: how much of a thread's last walk is unchanged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Finds what is unchanged of a memo's walk. That is a loop of independent loads: it needs no table,
// and no load waits for the one before. The loop begins at the root, and ends at the first word
// that differs. So a stack that has nothing in common with the last one costs a few words.
template <class Registers, StackMemory M, class Step>
class MemoCheck {
 public:
  MemoCheck(const Registers& registers, const M& memory, WalkMemo& memo, const Step& step) noexcept
      : registers_(registers), memory_(memory), memo_(memo), step_(step) {}

  // The index of the first of the memo's frames from which on the stack is unchanged, for a walk
  // that reaches that frame in the same state; WalkMemo::kMaxFrames if nothing is. Completes the
  // frames, so it is called once before each walk.
  [[nodiscard]] STROBE_ALWAYS_INLINE std::size_t FirstUnchanged() const noexcept {
    if (memo_.count_ == 0) return WalkMemo::kEnd;
    const M memory = memory_;  // a copy, so that the compiler knows that its bounds are constant
    Frame* const end = memo_.frames_.data() + WalkMemo::kEnd;
    Frame* const first = end - memo_.count_;
    Frame* const first_complete = first + memo_.as_walked_;
    if (first_complete > end - 1) WalkMemo::Complete(end[-1], !memo_.is_end_known_);
    Address word = 0;
    const bool has_room_for_flags =
        !memory.ReadWord(memory.end() - Address{WalkMemo::kMaxSlot + 1} * 8, word);
    if (!has_room_for_flags) return WalkMemo::kEnd;
    Frame* frame = end;
    // True if a step must tell where the next frame leads.
    bool needs_step = !memo_.is_end_known_;
    do {
      if (needs_step && !StepLeadsTo(frame[-1], frame == end ? nullptr : frame)) [[unlikely]]
        break;
      --frame;
      if (frame > first_complete) frame = FirstChanged(frame, first_complete, memory);
      if (frame <= first_complete) {
        for (; frame != first; --frame) {
          WalkMemo::Complete(frame[-1], WalkMemo::IsFpLiveBefore(*frame));
          if (!IsUnchanged(frame, memory)) break;
        }
      }
      needs_step = frame != first && (frame->slot & WalkMemo::kNeedsStep) != 0;
    } while (needs_step);
    return static_cast<std::size_t>(frame - memo_.frames_.data());
  }

 private:
  using Frame = WalkMemo::Frame;

  // True if a step from the memo's frame, taken once more, leads to `caller`, or to the end of the
  // stack if `caller` is nullptr.
  STROBE_ALWAYS_INLINE bool StepLeadsTo(const Frame& frame, const Frame* caller) const noexcept {
    if ((frame.slot & WalkMemo::kIsExact) != 0)
      return false;  // it may depend on more registers than the memo has
    FrameState<Registers> state{
        .registers = registers_, .innermost = &registers_, .is_exact = false};
    state.registers.pc = frame.pc;
    state.registers.sp = WalkMemo::SpOf(frame, memo_.top_);
    state.registers.fp = frame.fp;
    const StepResult result = step_(state);
    return caller == nullptr
               ? result == StepResult::kEnd
               : result == StepResult::kCaller && WalkMemo::IsAt(state, *caller, memo_.top_);
  }

  // From `frame` on towards the leaf: the first frame that has changed, or `last`. A function of
  // its own, because this loop is most of what a walk does, and needs the CPU's registers.
  [[gnu::noinline]] Frame* FirstChanged(Frame* frame, const Frame* last,
                                        const M& memory_at) const noexcept {
    const M memory = memory_at;
    while (frame > last) {
      // Four at a time: the loop's own work takes as long as the comparison of one frame.
      if (frame - last >= 4 && HasSameReturnAddress(frame, memory) &&
          HasSameReturnAddress(frame - 1, memory) && HasSameReturnAddress(frame - 2, memory) &&
          HasSameReturnAddress(frame - 3, memory)) {
        frame -= 4;
      } else if (IsUnchanged(frame, memory)) {
        --frame;
      } else {
        break;
      }
    }
    return frame;
  }

  // True if the stack words that led from the previous frame to this one are unchanged.
  STROBE_ALWAYS_INLINE bool IsUnchanged(const Frame* frame, const M& memory) const noexcept {
    if (!HasSameReturnAddress(frame, memory)) [[unlikely]]
      return frame->slot > WalkMemo::kMaxSlot && IsUnchangedByFlags(frame);
    return true;
  }

  // The same for a frame without flags; false for a frame with flags.
  STROBE_ALWAYS_INLINE bool HasSameReturnAddress(const Frame* frame,
                                                 const M& memory) const noexcept {
    Address word = 0;
    return memory.ReadWord(memory.end() - Address{frame->slot} * 8, word) &&
           Registers::PlainReturnAddress(word) == frame->pc;
  }

  // The same for a frame with flags.
  bool IsUnchangedByFlags(const Frame* at) const noexcept {
    if ((at->slot & WalkMemo::kNeedsStep) != 0) return false;
    const Address sp = WalkMemo::SpOf(*at, memo_.top_);
    Address word = 0;
    if (!memory_.ReadWord(sp - Address{at->rule.ra_words()} * 8, word) ||
        Registers::PlainReturnAddress(word) != at->pc)
      return false;
    if ((at->slot & WalkMemo::kIsFpLive) == 0 || at->rule.fp_words() == 0) return true;
    return memory_.ReadWord(sp - Address{at->rule.fp_words()} * 8, word) && word == at->fp;
  }

  const Registers& registers_;
  const M& memory_;
  WalkMemo& memo_;
  const Step& step_;
};

}  // namespace internal
}  // namespace strobe
