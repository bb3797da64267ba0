// IncrementalWalk: a walk that ends where the thread's last walk is unchanged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/memo_check.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A walk from `registers` on. step(state) takes one frame. The walk ends where it reaches one of
// the frames that `memo` has from `unchanged_from` on.
template <class Registers, StackMemory M, class Step>
class IncrementalWalk {
 public:
  STROBE_ALWAYS_INLINE IncrementalWalk(WalkMemo& memo, std::size_t unchanged_from,
                                       std::span<Address> output) noexcept
      : memo_(memo), top_(memo.top_), output_(output) {
    SetCursor(unchanged_from);
  }

  // Writes only the frames that are new; WalkResult::shared says how many follow.
  STROBE_ALWAYS_INLINE WalkResult Run(const Registers& registers, const Step& step) noexcept {
    FrameState<Registers> state{.registers = registers, .innermost = &registers};
    while (true) {
      if (state.registers.sp >= cursor_sp_ && IsShared(state))
        return FinishComplete(kEnd - cursor_);
      if (written_ == room_ && !MakeRoom()) return Finish(StackEnd::kTruncated);
      output_[written_] = state.code_address();
      distances_ |= Keep(state, std::min(written_, kEnd - 1));
      ++written_;
      state.rule = UnwindRule::Unknown();
      switch (step(state)) {
        case StepResult::kPending: {
          WalkResult pending = Finish(StackEnd::kNoUnwindInfo);
          pending.is_pending = true;
          pending.stop = StopAt(state);
          return pending;
        }
        case StepResult::kCaller: break;
        case StepResult::kEnd:
          memo_.is_end_known_ = state.rule == UnwindRule::Stop();
          return FinishComplete(0);
        case StepResult::kBroken: return Finish(StackEnd::kBroken);
        case StepResult::kUnknown:
        case StepResult::kLost: return Finish(StackEnd::kNoUnwindInfo);
      }
    }
  }

 private:
  using Frame = WalkMemo::Frame;
  static constexpr std::size_t kEnd = WalkMemo::kEnd;

  STROBE_ALWAYS_INLINE void SetCursor(std::size_t at) noexcept {
    cursor_ = at;
    cursor_sp_ = at == kEnd ? ~Address{0} : WalkMemo::SpOf(memo_.frames_[at], top_);
    room_ = at == kEnd ? output_.size() : std::min(at, output_.size());
  }

  // Makes room for one more new frame, by giving up one of the last walk's. False if the output is
  // full.
  STROBE_ALWAYS_INLINE bool MakeRoom() noexcept {
    if (written_ == output_.size()) return false;
    SetCursor(cursor_ + 1);
    return true;
  }

  // True if the rest of the walk is in the memo; `cursor_` is then at the frame of `state`.
  STROBE_ALWAYS_INLINE bool IsShared(const FrameState<Registers>& state) noexcept {
    std::size_t at = cursor_;
    while (at < kEnd && WalkMemo::SpOf(memo_.frames_[at], top_) < state.registers.sp) ++at;
    const bool is_shared = at < kEnd && WalkMemo::IsAt(state, memo_.frames_[at], top_);
    // Without room for all frames, the walk does not reach the end.
    SetCursor(is_shared && written_ + (kEnd - at) > output_.size() ? kEnd : at);
    if (!is_shared || cursor_ == kEnd) return false;
    const std::uint32_t is_fp_live = memo_.frames_[at].slot & WalkMemo::kIsFpLive;
    distances_ |= Keep(state, at);  // another rule may have led here
    WalkMemo::Complete(memo_.frames_[at], is_fp_live != 0);
    return true;
  }

  // Stores the frame of `state`, not completed: the slot is that of sp. Returns the distance from
  // sp to the end.
  STROBE_ALWAYS_INLINE Address Keep(const FrameState<Registers>& state, std::size_t at) noexcept {
    const Address distance = top_ - state.registers.sp;
    memo_.frames_[at] = {.pc = state.registers.pc,
                         .fp = state.registers.fp,
                         .slot = static_cast<std::uint32_t>(distance / 8) |
                                 (state.is_exact ? WalkMemo::kIsExact : 0),
                         .rule = state.rule};
    return distance;
  }

  // Leaves no memo: the stack's end was not found.
  STROBE_ALWAYS_INLINE WalkResult Finish(StackEnd end) noexcept {
    memo_.count_ = 0;
    return {.count = written_, .end = end};
  }

  // Moves the new frames in front of the shared ones.
  STROBE_ALWAYS_INLINE WalkResult FinishComplete(std::size_t shared) noexcept {
    // A stack that is too deep, or that has a distance which no slot can hold, leaves no memo.
    const std::size_t count = written_ + shared;
    const bool is_kept = count <= kEnd && distances_ % 8 == 0 &&
                         distances_ / 8 + UnwindRule::kMaxSlotWords <= WalkMemo::kMaxSlot;
    memo_.count_ = is_kept ? static_cast<std::uint32_t>(count) : 0;
    memo_.as_walked_ = static_cast<std::uint32_t>(written_);
    Frame* const frames = memo_.frames_.data();
    if (is_kept) std::memmove(frames + (kEnd - count), frames, written_ * sizeof(Frame));
    return {.count = written_, .end = StackEnd::kComplete, .shared = shared};
  }

  WalkMemo& memo_;
  const Address top_;
  const std::span<Address> output_;
  std::size_t written_ = 0;
  std::size_t cursor_ = kEnd;        // in the memo: the unchanged frames begin here
  Address cursor_sp_ = ~Address{0};  // the stack pointer there
  // Frames that can be written before the cursor has to move, or the output is full.
  std::size_t room_ = 0;
  Address distances_ = 0;  // of all frames from the end of the stack, or-ed
};

// Walks from `registers` on until the rest of the stack is in `memo`. step(state) takes one frame.
// `source` is a number for the rules that `step` goes by: the memo of a walk by other rules is
// forgotten.
template <class Registers, StackMemory M, class Step>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult WalkFrames(const Registers& registers,
                                                              const M& memory, WalkMemo& memo,
                                                              std::uint64_t source,
                                                              std::span<Address> output,
                                                              const Step& step) noexcept {
  if (output.empty()) {
    memo.Clear();
    return {0, StackEnd::kTruncated};
  }
  memo.Begin(source, memory.end());
  const std::size_t unchanged_from =
      MemoCheck<Registers, M, Step>(registers, memory, memo, step).FirstUnchanged();
  return IncrementalWalk<Registers, M, Step>(memo, unchanged_from, output).Run(registers, step);
}

}  // namespace internal
}  // namespace strobe
