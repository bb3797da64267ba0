// TrueStack: the stack of calls as it is, from watching what each instruction does.
#pragma once

#include <cstddef>
#include <vector>

#include "instruction_kind.h"
#include "strobe/base/address.h"

namespace strobe::testing {

class TrueStack {
 public:
  struct Registers {
    Address pc = 0;
    Address sp = 0;
    Address fp = 0;
  };
  struct Frame {
    Address address =
        0;  // where the caller goes on: behind its call, or where a signal interrupted it
    Address slot = 0;  // where the return address lies; of an interrupted frame, its stack pointer
    Address fp = 0;    // at the call
    bool is_interrupted = false;
    // Of an interrupted frame whose handler runs on an alternate stack: that stack.
    Address alternate_low = 0;
    Address alternate_high = 0;
  };

  void Clear() { frames_.clear(); }

  // Up to so many frames, nothing is allocated.
  void Reserve(std::size_t frames) { frames_.reserve(frames); }

  // An instruction has led from `before` to `now`; read_word(address) is a word of the stack. A
  // call that has pushed nothing went to the system, and is back, perhaps somewhere else.
  template <class ReadWord>
  void Follow(InstructionKind kind, const Registers& before, const Registers& now,
              ReadWord&& read_word) {
    constexpr Address kMaxInstructionBytes = 15;
    const bool is_transfer = now.pc - before.pc - 1 >= kMaxInstructionBytes;
    if (kind == InstructionKind::kCall && now.sp == before.sp - sizeof(Address)) {
      const Address return_address = read_word(now.sp);
      if (return_address - before.pc - 1 < kMaxInstructionBytes)
        Call(return_address, now.sp, before.fp);
    } else if (is_transfer || kind == InstructionKind::kReturn) {
      Transfer(now.sp);
    }
  }

  // A call has pushed its return address at `sp`.
  void Call(Address return_address, Address sp, Address fp = 0) {
    frames_.push_back({.address = return_address, .slot = sp, .fp = fp});
  }

  // A signal has interrupted `pc`; its handler begins with the address of its trampoline at
  // `handler_sp`. [low, high) is the alternate stack that the kernel knew of, if any.
  void Interrupt(Address pc, Address sp, Address trampoline, Address handler_sp, Address low,
                 Address high) {
    const bool is_on_alternate =
        handler_sp >= low && handler_sp < high && !(sp >= low && sp < high);
    frames_.push_back({.address = pc,
                       .slot = sp,
                       .is_interrupted = true,
                       .alternate_low = is_on_alternate ? low : 0,
                       .alternate_high = is_on_alternate ? high : 0});
    Call(trampoline, handler_sp);
  }

  // The innermost handler has returned to what it interrupted, perhaps to another instruction of
  // that; false if there was none.
  bool ReturnFromSignal() {
    while (!frames_.empty() && !frames_.back().is_interrupted) frames_.pop_back();
    if (frames_.empty()) return false;
    frames_.pop_back();
    return true;
  }

  // Control went elsewhere than to the next instruction, with the stack pointer at `sp`: frames
  // below it are gone. A function that has only popped its own return address, as vfork does, goes
  // straight on and keeps its caller.
  void Transfer(Address sp) {
    while (!frames_.empty()) {
      const std::size_t interrupted = InnermostInterrupted();
      if (interrupted < frames_.size()) {
        const Frame& frame = frames_[interrupted];
        const bool has_left = frame.alternate_high != 0
                                  ? sp < frame.alternate_low || sp > frame.alternate_high
                                  : sp >= frame.slot;
        if (has_left) {
          frames_.resize(interrupted);
          continue;
        }
      }
      if (frames_.back().is_interrupted || frames_.back().slot >= sp) return;
      frames_.pop_back();
    }
  }

  // Outermost first.
  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }

 private:
  [[nodiscard]] std::size_t InnermostInterrupted() const {
    for (std::size_t i = frames_.size(); i > 0; --i) {
      if (frames_[i - 1].is_interrupted) return i - 1;
    }
    return frames_.size();
  }

  std::vector<Frame> frames_;
};

}  // namespace strobe::testing
