// WalkMemo: one thread's last walk, so that its next one need not find again what has not changed.
//
// A caller's frame follows from the state (pc, sp, fp) that a walk comes to it with and from two words of the stack. So where a walk comes
// to a state that the last one came to, and the words that were read from there on are what they were, the rest of the stack is the same
// by construction. To look at those words is a loop of independent loads: no table, and no load that waits for the one before.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

namespace internal {
template <class Registers, StackMemory M, class Step>
class IncrementalWalk;
}

// Belongs to one thread's captures; the collector may only ask for a Clear. All zero bytes are an empty memo, so that it can lie in memory
// that is committed by the first sample. Stacks beyond kMaxFrames are walked without it.
class WalkMemo {
 public:
  static constexpr std::size_t kMaxFrames = 1024;

  // Forgets the last walk: the next one shares nothing.
  STROBE_SIGNAL_SAFE void Clear() noexcept { count_ = 0; }

  // The memo's own memory, for a walk that shares nothing: it forgets the last one.
  STROBE_SIGNAL_SAFE std::span<std::byte> Lend() noexcept {
    Clear();
    return std::as_writable_bytes(std::span(frames_));
  }

  // Frames of the last walk.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  template <class Registers, StackMemory M, class Step>
  friend class internal::IncrementalWalk;

  // A frame as the walk came to it, and how it left it.
  struct Frame {
    Address pc;
    Address fp;
    std::uint32_t words_to_top : 30;  // from sp to the end of the stack memory
    std::uint32_t is_exact : 1;       // as FrameState has it
    std::uint32_t is_fp_live : 1;     // whether anything beyond depends on fp
    UnwindRule rule;                  // unknown where more than two words of the stack led to the caller
  };
  static_assert(sizeof(Frame) == 24);

  std::uint64_t source_;  // what rules the last walk went by
  Address top_;           // and on which stack
  std::uint32_t count_;
  StackEnd end_;
  // The last walk's frames are the last `count_`, leaf first: the root stays where it is while the leaves come and go. A walk under way
  // writes its own from the front.
  std::array<Frame, kMaxFrames> frames_;
};
static_assert(sizeof(WalkMemo) <= 32 * 1024);

namespace internal {

// A walk from `registers` on that step(state) takes frame by frame, until it meets what `memo` holds. `source` is a number for the rules
// that `step` goes by: another number, another stack.
template <class Registers, StackMemory M, class Step>
class IncrementalWalk {
 public:
  STROBE_SIGNAL_SAFE IncrementalWalk(const Registers& registers, const M& memory, WalkMemo& memo, std::uint64_t source,
                                     std::span<Address> output, const Step& step) noexcept
      : state_{.registers = registers, .innermost = &registers}, memory_(memory), memo_(memo), output_(output), step_(step) {
    if (memo.source_ != source || memo.top_ != memory.end()) memo.count_ = 0;
    memo.source_ = source;
    memo.top_ = memory.end();
    cursor_ = kEnd - memo.count_;
  }

  // Only the frames that are new are written; WalkResult::shared says how many follow.
  STROBE_SIGNAL_SAFE WalkResult Run() noexcept {
    while (true) {
      if (FindInMemo() && Reuse()) return Finish(StackEnd::kComplete, kEnd - cursor_);
      if (written_ == output_.size()) return Finish(StackEnd::kTruncated, 0);
      const Address sp = state_.registers.sp;
      Append(UnwindRule::Unknown());
      state_.rule = UnwindRule::Unknown();
      const StepResult result = step_(state_);
      if (keeps_memo_) memo_.frames_[written_ - 1].rule = VerifiableRule(sp);
      switch (result) {
        case StepResult::kEnd: return Finish(StackEnd::kComplete, 0);
        case StepResult::kBroken: return Finish(StackEnd::kBroken, 0);
        case StepResult::kUnknown:
        case StepResult::kLost: return Finish(StackEnd::kNoUnwindInfo, 0);
        case StepResult::kCaller: break;
      }
    }
  }

 private:
  using Frame = WalkMemo::Frame;
  static constexpr std::size_t kEnd = WalkMemo::kMaxFrames;

  [[nodiscard]] Address SpOf(const Frame& frame) const { return memo_.top_ - Address{frame.words_to_top} * 8; }

  // Whether a walk in this state goes on as the last one did from `frame`.
  bool IsAt(const FrameState<Registers>& state, const Frame& frame) const noexcept {
    return SpOf(frame) == state.registers.sp && frame.pc == state.registers.pc && (frame.is_exact != 0) == state.is_exact &&
           (frame.is_fp_live == 0 || frame.fp == state.registers.fp);
  }

  // Whether the last walk came to this state, too; `cursor_` is then at that frame.
  bool FindInMemo() noexcept {
    while (cursor_ < kEnd && SpOf(memo_.frames_[cursor_]) < state_.registers.sp) ++cursor_;
    return cursor_ < kEnd && IsAt(state_, memo_.frames_[cursor_]);
  }

  // Whether `frame`, come to with the same state as last time, still leads to `caller`.
  bool StillLeadsTo(const Frame& frame, const Frame& caller) const noexcept {
    if (frame.rule.kind() > UnwindRule::Kind::kFromFp) return false;
    const Address cfa = SpOf(caller);
    Address word = 0;
    if (!memory_.ReadWord(cfa - Address{frame.rule.ra_words()} * 8, word)) return false;
    if (PlainReturnAddress(state_.registers, word) != caller.pc) return false;
    if (frame.rule.fp_words() == 0 || caller.is_fp_live == 0) return true;
    return memory_.ReadWord(cfa - Address{frame.rule.fp_words()} * 8, word) && word == caller.fp;
  }

  // Takes the step from the memo's frame at `at`, which the walk would come to with the same state as last time.
  StepResult StepFrom(std::size_t at, FrameState<Registers>& state) const noexcept {
    state = state_;
    if (at != cursor_) {
      const Frame& frame = memo_.frames_[at];
      if (frame.is_exact != 0) return StepResult::kUnknown;  // it may depend on more registers than the memo has
      state.registers.pc = frame.pc;
      state.registers.sp = SpOf(frame);
      state.registers.fp = frame.fp;
      state.is_exact = false;
    }
    return step_(state);
  }

  // The same as StillLeadsTo for a frame whose rule says too little: it is left once more.
  bool StepLeadsToNext(std::size_t at) const noexcept {
    if (memo_.frames_[at].rule != UnwindRule::Unknown()) return false;
    FrameState<Registers> state;
    return StepFrom(at, state) == StepResult::kCaller && IsAt(state, memo_.frames_[at + 1]);
  }

  // Whether the memo's outermost frame, come to with the same state, still has no caller.
  bool StillEnds() const noexcept {
    if (memo_.frames_[kEnd - 1].rule.kind() == UnwindRule::Kind::kStop) return true;
    FrameState<Registers> state;
    return StepFrom(kEnd - 1, state) == StepResult::kEnd;
  }

  // Goes on from the frame at `cursor_` as far as the memo still holds. True where that is to the end of a whole stack; otherwise the state
  // becomes that of the first frame that has to be left anew.
  bool Reuse() noexcept {
    std::size_t last = cursor_;
    while (last + 1 < kEnd && (StillLeadsTo(memo_.frames_[last], memo_.frames_[last + 1]) || StepLeadsToNext(last))) ++last;
    if (last + 1 == kEnd && memo_.end_ == StackEnd::kComplete && written_ + (kEnd - cursor_) <= output_.size() && StillEnds()) return true;
    for (std::size_t at = cursor_; at < last && written_ < output_.size(); ++at) {
      const UnwindRule rule = memo_.frames_[at].rule;
      Append(rule);
      if (rule == UnwindRule::Unknown()) {
        static_cast<void>(step_(state_));
        continue;
      }
      const Frame& caller = memo_.frames_[at + 1];
      state_.registers.pc = caller.pc;
      state_.registers.sp = SpOf(caller);
      state_.is_exact = caller.is_exact != 0;
      // The last walk kept an fp that nobody needed, so it is read again; it could be read then.
      if (rule.fp_words() != 0)
        static_cast<void>(memory_.ReadWord(state_.registers.sp - Address{rule.fp_words()} * 8, state_.registers.fp));
    }
    cursor_ = last + 1;  // the frame that it stands at is walked now
    return false;
  }

  // Writes the frame that the state is at, which will be left by `rule`, as far as that is known yet.
  void Append(UnwindRule rule) noexcept {
    const std::size_t at = written_++;
    output_[at] = state_.code_address();
    const Address distance = memo_.top_ - state_.registers.sp;
    constexpr Address kMaxDistance = (Address{1} << 30) * 8 - 8;
    // A stack that cannot be kept, because of its depth or an odd sp, leaves no memo.
    if (at == kEnd || distance > kMaxDistance || distance % 8 != 0) keeps_memo_ = false;
    if (!keeps_memo_) {
      cursor_ = kEnd;
      return;
    }
    cursor_ = std::max(cursor_, at + 1);  // the last walk's frames give way
    memo_.frames_[at] = {.pc = state_.registers.pc,
                         .fp = state_.registers.fp,
                         .words_to_top = static_cast<std::uint32_t>(distance / 8),
                         .is_exact = state_.is_exact,
                         .is_fp_live = 1,
                         .rule = rule};
  }

  // The rule that the last step went by, if the two words that it says were read are all that counts and lie above the frame's own sp.
  [[nodiscard]] UnwindRule VerifiableRule(Address sp) const noexcept {
    const UnwindRule rule = state_.rule;
    if (rule.kind() == UnwindRule::Kind::kStop) return rule;
    if (rule.kind() == UnwindRule::Kind::kSpecial || rule.ra_words() == 0) return UnwindRule::Unknown();
    const Address words = (state_.registers.sp - sp) / 8;
    return rule.ra_words() <= words && rule.fp_words() <= words ? rule : UnwindRule::Unknown();
  }

  // Puts the new frames in front of those that are shared.
  WalkResult Finish(StackEnd end, std::size_t shared) noexcept {
    const WalkResult result{.count = written_, .end = end, .shared = shared};
    if (!keeps_memo_) {
      memo_.count_ = 0;
      return result;
    }
    const std::size_t begin = kEnd - shared - written_;
    Frame* const frames = memo_.frames_.data();
    std::memmove(frames + begin, frames, written_ * sizeof(Frame));
    memo_.count_ = static_cast<std::uint32_t>(written_ + shared);
    memo_.end_ = end;
    bool is_live = shared == 0 || frames[kEnd - shared].is_fp_live != 0;
    for (std::size_t i = kEnd - shared; i-- > begin;) {
      switch (frames[i].rule.kind()) {
        case UnwindRule::Kind::kFromSp: is_live = is_live && frames[i].rule.fp_words() == 0; break;
        case UnwindRule::Kind::kStop: is_live = false; break;
        default: is_live = true;
      }
      frames[i].is_fp_live = is_live ? 1 : 0;
    }
    return result;
  }

  FrameState<Registers> state_;
  const M& memory_;
  WalkMemo& memo_;
  const std::span<Address> output_;
  const Step& step_;
  std::size_t written_ = 0;
  std::size_t cursor_ = kEnd;
  bool keeps_memo_ = true;
};

template <class Registers, StackMemory M, class Step>
STROBE_SIGNAL_SAFE WalkResult WalkFrames(const Registers& registers, const M& memory, WalkMemo& memo, std::uint64_t source,
                                         std::span<Address> output, const Step& step) noexcept {
  if (output.empty()) {
    memo.Clear();
    return {0, StackEnd::kTruncated};
  }
  return IncrementalWalk<Registers, M, Step>(registers, memory, memo, source, output, step).Run();
}

}  // namespace internal
}  // namespace strobe
