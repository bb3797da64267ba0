// WalkMemo: one thread's last walk, so that its next one need not find again what has not changed.
//
// A caller's frame follows from the state (pc, sp, fp) that a walk comes to it with and from two
// words of the stack. So where a walk comes to a state that the last one came to, and the words
// that were read from there on are what they were, the rest of the stack is the same by
// construction. To look at those words is a loop of independent loads: no table, and no load that
// waits for the one before. It begins at the root, and where a word differs it ends: so a stack
// that has nothing in common with the last one pays for a few words.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

template <class Registers, StackMemory M, class Step>
class MemoCheck;
template <class Registers, StackMemory M, class Step>
class IncrementalWalk;

// Belongs to one thread's captures; the collector may only ask for a Clear. All zero bytes are an
// empty memo, so that it can lie in memory that is committed by the first sample. Stacks beyond
// kMaxFrames, and such as have no end, are walked without it.
class WalkMemo {
 public:
  static constexpr std::size_t kMaxFrames = 1024;

  // Forgets the last walk: the next one shares nothing.
  STROBE_SIGNAL_SAFE void Clear() noexcept { count_ = 0; }

  // The memo's own memory, for a walk that shares nothing: it forgets the last one.
  STROBE_SIGNAL_SAFE std::span<std::uint8_t> Lend() noexcept {
    Clear();
    return {reinterpret_cast<std::uint8_t*>(frames_.data()), sizeof(frames_)};
  }

  // A walk begins on the stack that ends at `top`. `source` is a number for the rules that it goes
  // by: where either is another one than the last time, that walk is forgotten.
  STROBE_SIGNAL_SAFE void Begin(std::uint64_t source, Address top) noexcept {
    if (source_ != source || top_ != top) count_ = 0;
    source_ = source;
    top_ = top;
  }

  // Frames of the last walk.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  template <class Registers, StackMemory M, class Step>
  friend class MemoCheck;
  template <class Registers, StackMemory M, class Step>
  friend class IncrementalWalk;

  static constexpr std::size_t kEnd = kMaxFrames;
  // What a frame's word says beside its slot. Each moves the slot by 4 GiB or more, to where no
  // stack reaches: so one comparison tells the frames for which the word that pc was read from is
  // all that counts.
  static constexpr std::uint32_t kIsOdd = std::uint32_t{1}
                                          << 29;  // come to in a way that two words do not tell
  static constexpr std::uint32_t kIsFpLive = std::uint32_t{1}
                                             << 30;  // something beyond depends on fp
  static constexpr std::uint32_t kIsExact = std::uint32_t{1} << 31;  // as FrameState has it
  static constexpr std::uint32_t kMaxSlot = kIsOdd - 1;

  // A frame, and how the walk came to it. While it is as it was walked, its slot is that of its sp,
  // its only flag kIsExact, and its rule whatever the step said.
  struct Frame {
    Address pc;
    Address fp;
    std::uint32_t
        // The word that pc was read from, counted from the end of the stack memory; and flags.
        slot;
    UnwindRule rule;  // by which the frame before was left, or Unknown
  };

  // Makes a frame that is as it was walked complete.
  static void Complete(Frame& frame, bool is_fp_live) noexcept {
    const bool is_odd = !frame.rule.is_frame() || frame.rule.ra_words() == 0;
    if (is_odd) frame.rule = UnwindRule::Unknown();
    frame.slot += frame.rule.ra_words();
    frame.slot |= (is_odd ? kIsOdd : 0) | (is_fp_live ? kIsFpLive : 0);
  }
  // Whether the frame before that one depends on fp.
  static bool IsFpLiveBefore(const Frame& frame) noexcept {
    return frame.rule.kind() != UnwindRule::Kind::kFromSp ||
           (frame.rule.fp_words() == 0 && (frame.slot & kIsFpLive) != 0);
  }
  static_assert(sizeof(Frame) == 24);

  static Address SpOf(const Frame& frame, Address top) noexcept {
    return top - (Address{frame.slot & kMaxSlot} - frame.rule.ra_words()) * 8;
  }

  // Whether a walk in this state goes on as the last one did from `frame`.
  template <class Registers>
  static bool IsAt(const FrameState<Registers>& state, const Frame& frame, Address top) noexcept {
    return SpOf(frame, top) == state.registers.sp && frame.pc == state.registers.pc &&
           ((frame.slot & kIsExact) != 0) == state.is_exact &&
           ((frame.slot & kIsFpLive) == 0 || frame.fp == state.registers.fp);
  }

  std::uint64_t source_;  // what rules the last walk went by
  Address top_;           // and on which stack
  std::uint32_t count_;
  std::uint32_t
      as_walked_;      // of these, leaf first: only what the next walk comes to is worth completing
  bool is_end_known_;  // the outermost frame has no caller, whatever its registers say
  // The last walk's frames are the last `count_`, leaf first: the root stays where it is while the
  // leaves come and go. A walk under way writes its own from the front.
  std::array<Frame, kMaxFrames> frames_;
};
static_assert(sizeof(WalkMemo) <= 32 * 1024);

// What of the last walk still holds.
template <class Registers, StackMemory M, class Step>
class MemoCheck {
 public:
  MemoCheck(const Registers& registers, const M& memory, WalkMemo& memo, const Step& step) noexcept
      : registers_(registers), memory_(memory), memo_(memo), step_(step) {}

  // The first of the memo's frames from which on the stack is what it was, for a walk that comes
  // there with the same state. Completes them.
  [[nodiscard]] STROBE_ALWAYS_INLINE std::size_t FirstThatHolds() const noexcept {
    if (memo_.count_ == 0) return WalkMemo::kEnd;
    const M memory = memory_;  // whose bounds are known not to change
    Frame* const end = memo_.frames_.data() + WalkMemo::kEnd;
    Frame* const first = end - memo_.count_;
    Frame* const first_complete = first + memo_.as_walked_;
    if (first_complete > end - 1) WalkMemo::Complete(end[-1], !memo_.is_end_known_);
    Address word = 0;
    const bool has_room_for_flags =
        !memory.ReadWord(memory.end() - Address{WalkMemo::kMaxSlot + 1} * 8, word);
    if (!has_room_for_flags) return WalkMemo::kEnd;
    Frame* frame = end;
    // Whether it is to be asked of a step what the frame before leads to.
    bool is_odd = !memo_.is_end_known_;
    do {
      if (is_odd && !StepLeadsTo(frame[-1], frame == end ? nullptr : frame)) [[unlikely]]
        break;
      --frame;
      if (frame > first_complete) frame = FirstNotComeTo(frame, first_complete, memory);
      if (frame <= first_complete) {
        for (; frame != first; --frame) {
          WalkMemo::Complete(frame[-1], WalkMemo::IsFpLiveBefore(*frame));
          if (!IsStillComeTo(frame, memory)) break;
        }
      }
      is_odd = frame != first && (frame->slot & WalkMemo::kIsOdd) != 0;
    } while (is_odd);
    return static_cast<std::size_t>(frame - memo_.frames_.data());
  }

 private:
  using Frame = WalkMemo::Frame;

  // Whether a step from the memo's frame, taken once more, leads to `caller`, or to the end of the
  // stack where that is nullptr.
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

  // From `frame` on towards the leaf: the first that is not come to any more, but none beyond
  // `last`. A function of its own, for this loop is most of what a walk does, and needs the
  // registers.
  STROBE_NOINLINE Frame* FirstNotComeTo(Frame* frame, const Frame* last,
                                        const M& memory_at) const noexcept {
    const M memory = memory_at;
    while (frame > last) {
      // Four at a time: to go on to the next takes as long as to look at one.
      if (frame - last >= 4 && IsPlainlyComeTo(frame, memory) &&
          IsPlainlyComeTo(frame - 1, memory) && IsPlainlyComeTo(frame - 2, memory) &&
          IsPlainlyComeTo(frame - 3, memory)) {
        frame -= 4;
      } else if (IsStillComeTo(frame, memory)) {
        --frame;
      } else {
        break;
      }
    }
    return frame;
  }

  // Whether a walk that comes to the frame before still comes to that one, by words that tell it.
  STROBE_ALWAYS_INLINE bool IsStillComeTo(const Frame* frame, const M& memory) const noexcept {
    if (!IsPlainlyComeTo(frame, memory)) [[unlikely]]
      return frame->slot > WalkMemo::kMaxSlot && MoreLeadsTo(frame);
    return true;
  }

  // The same for a frame without flags; false for one with.
  STROBE_ALWAYS_INLINE bool IsPlainlyComeTo(const Frame* frame, const M& memory) const noexcept {
    Address word = 0;
    return memory.ReadWord(memory.end() - Address{frame->slot} * 8, word) &&
           Registers::PlainReturnAddress(word) == frame->pc;
  }

  // The same for a frame with flags.
  bool MoreLeadsTo(const Frame* at) const noexcept {
    if ((at->slot & WalkMemo::kIsOdd) != 0) return false;
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

// A walk from `registers` on that step(state) takes frame by frame, until it meets what `memo`
// holds from `holds_from` on.
template <class Registers, StackMemory M, class Step>
class IncrementalWalk {
 public:
  STROBE_ALWAYS_INLINE IncrementalWalk(WalkMemo& memo, std::size_t holds_from,
                                       std::span<Address> output) noexcept
      : memo_(memo), top_(memo.top_), output_(output) {
    SetCursor(holds_from);
  }

  // Only the frames that are new are written; WalkResult::shared says how many follow.
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

  // For one more new frame, of the last walk's. False where the output has none.
  STROBE_ALWAYS_INLINE bool MakeRoom() noexcept {
    if (written_ == output_.size()) return false;
    SetCursor(cursor_ + 1);
    return true;
  }

  // Whether all that is left of the walk is in the memo; `cursor_` is then at the frame that
  // `state` is.
  STROBE_ALWAYS_INLINE bool IsShared(const FrameState<Registers>& state) noexcept {
    std::size_t at = cursor_;
    while (at < kEnd && WalkMemo::SpOf(memo_.frames_[at], top_) < state.registers.sp) ++at;
    const bool is_shared = at < kEnd && WalkMemo::IsAt(state, memo_.frames_[at], top_);
    // Where there is no room for all, the end will not be seen.
    SetCursor(is_shared && written_ + (kEnd - at) > output_.size() ? kEnd : at);
    if (!is_shared || cursor_ == kEnd) return false;
    const std::uint32_t is_fp_live = memo_.frames_[at].slot & WalkMemo::kIsFpLive;
    distances_ |= Keep(state, at);  // it may have been come to in another way
    WalkMemo::Complete(memo_.frames_[at], is_fp_live != 0);
    return true;
  }

  // Keeps the frame that the state is at, as it is known now: its slot is that of its sp. Returns
  // the distance from there to the end.
  STROBE_ALWAYS_INLINE Address Keep(const FrameState<Registers>& state, std::size_t at) noexcept {
    const Address distance = top_ - state.registers.sp;
    memo_.frames_[at] = {.pc = state.registers.pc,
                         .fp = state.registers.fp,
                         .slot = static_cast<std::uint32_t>(distance / 8) |
                                 (state.is_exact ? WalkMemo::kIsExact : 0),
                         .rule = state.rule};
    return distance;
  }

  // A stack whose end was not found is not kept.
  STROBE_ALWAYS_INLINE WalkResult Finish(StackEnd end) noexcept {
    memo_.count_ = 0;
    return {.count = written_, .end = end};
  }

  // Puts the new frames in front of those that are shared.
  STROBE_ALWAYS_INLINE WalkResult FinishComplete(std::size_t shared) noexcept {
    // A stack that cannot be kept, because of its depth, or a distance that is no slot, leaves no
    // memo.
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
  std::size_t cursor_ = kEnd;        // in the memo: what holds begins here
  Address cursor_sp_ = ~Address{0};  // the stack pointer there
  std::size_t room_ =
      0;  // frames that can be written before the cursor has to move, or the output is full
  Address distances_ = 0;  // of all frames from the end of the stack, or-ed
};

// Walks from `registers` on as far as `memo` does not know the way; step(state) takes one frame.
// `source` is a number for the rules that `step` goes by: another number, another stack.
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
  const std::size_t holds_from =
      MemoCheck<Registers, M, Step>(registers, memory, memo, step).FirstThatHolds();
  return IncrementalWalk<Registers, M, Step>(memo, holds_from, output).Run(registers, step);
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
