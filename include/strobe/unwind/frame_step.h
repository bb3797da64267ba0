// The contract of a step: from one frame to its caller. ChainUnwinder makes an unwinder of steps.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// A frame of a walk: its registers, and whether pc is the exact instruction (of the innermost
// frame, or of one that a signal interrupted) or a return address, which lies behind the call.
// There is no padding, so that compilers split copies up and keep a walk's state in the CPU's
// registers.
template <class Registers>
struct FrameState {
  Registers registers;
  // The registers that the walk began with, or nullptr; outlives the walk.
  const Registers* innermost = nullptr;
  // The rule of the last step, if a common rule describes the step completely. A Step need not set
  // it.
  UnwindRule rule = UnwindRule::Unknown();
  std::uint16_t stack_switches = 0;  // so far, to an address that is not above
  std::uint8_t recoveries = 0;       // so far, of a register that the walk does not keep
  bool is_exact = true;

  // An address inside the instruction that this frame is at.
  [[nodiscard]] Address code_address() const { return is_exact ? registers.pc : registers.pc - 1; }
};

// Where a walk stopped, for a walk that goes on from there.
template <class Registers>
FrameStop StopAt(const FrameState<Registers>& state) noexcept {
  return {.pc = state.registers.pc,
          .sp = state.registers.sp,
          .fp = state.registers.fp,
          .lr = state.registers.link_register(),
          .is_exact = state.is_exact};
}

// What a step found.
enum class StepResult : std::uint8_t {
  kCaller,   // `state` is the caller's now
  kEnd,      // this is the outermost frame
  kBroken,   // the caller's frame cannot be where the stack says
  kUnknown,  // this code is unknown; `state` is unchanged
  kPending,  // this code's table has not been built yet; `state` is unchanged
  // The rule is known, but it needs a register whose value is not known. No other step may guess.
  kLost,
};

namespace STROBE_HIDDEN internal {

// Makes `state` the caller's, or returns why it cannot.
template <class Registers>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE StepResult Return(FrameState<Registers>& state, Address pc,
                                                          Address sp, Address fp,
                                                          bool is_exact) noexcept {
  pc = Registers::PlainReturnAddress(pc);
  // A stack ends at a return address of 0. But a signal may interrupt a call through a null
  // pointer.
  if (!Registers::IsCodeAddress(pc)) [[unlikely]] {
    if (!is_exact || pc >= kLowestCode) return pc == 0 ? StepResult::kEnd : StepResult::kBroken;
  }
  state.registers.pc = pc;
  state.registers.sp = sp;
  state.registers.fp = fp;
  state.is_exact = is_exact;
  return StepResult::kCaller;
}

// Walks from the frame `state` on; step(state) takes one frame. The output is that of every
// Unwinder.
template <class Registers, class Step>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult WalkFrames(FrameState<Registers> state,
                                                              std::span<Address> output,
                                                              Step&& step) noexcept {
  if (output.empty()) return {0, StackEnd::kTruncated};
  output[0] = state.code_address();
  std::size_t count = 1;
  while (true) {
    switch (step(state)) {
      case StepResult::kEnd:
        return {.count = count, .end = StackEnd::kComplete, .stop = StopAt(state)};
      case StepResult::kBroken: return {count, StackEnd::kBroken};
      case StepResult::kUnknown:
      case StepResult::kLost: return {count, StackEnd::kNoUnwindInfo};
      case StepResult::kPending:
        return {.count = count,
                .end = StackEnd::kNoUnwindInfo,
                .is_pending = true,
                .stop = StopAt(state)};
      case StepResult::kCaller: break;
    }
    if (count == output.size()) return {count, StackEnd::kTruncated};
    output[count++] = state.code_address();
  }
}

template <class Registers, class Step>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult WalkFrames(const Registers& registers,
                                                              std::span<Address> output,
                                                              Step&& step) noexcept {
  return WalkFrames(FrameState<Registers>{.registers = registers, .innermost = &registers}, output,
                    step);
}

}  // namespace internal

// Step(state, memory) makes `state` the caller's, or returns why it cannot. It is pure and
// signal-safe, always ends, and reads only through `memory`.
template <class S>
concept FrameStep = requires(const S& step, FrameState<X86_64Registers>& x86_64,
                             FrameState<Aarch64Registers>& aarch64, const LiveStackMemory& live,
                             const CopiedStackMemory& copied) {
  { step.Step(x86_64, live) }
  noexcept->std::same_as<StepResult>;
  { step.Step(x86_64, copied) }
  noexcept->std::same_as<StepResult>;
  { step.Step(aarch64, live) }
  noexcept->std::same_as<StepResult>;
  { step.Step(aarch64, copied) }
  noexcept->std::same_as<StepResult>;
};

}  // namespace strobe
