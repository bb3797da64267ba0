// FramePointerUnwinder follows the chain of saved frame pointers. Complete only in code built with
// -fno-omit-frame-pointer; elsewhere the callers that keep none are missing.
#pragma once

#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/frame_pointer_step.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {

// Models ResumableUnwinder, for both architectures on every host. A frame whose very instruction is
// known (the innermost one, or one that a signal interrupted) may not have set up its frame pointer
// yet, or no more: it is unwound by the table of its code, where there is one. All others are
// unwound by (pc, fp) = ([fp + 8], [fp]), until fp is zero or another small number, as the
// outermost function leaves it, or the return address is 0. Signal-safe.
class FramePointerUnwinder {
 public:
  FramePointerUnwinder() = default;
  // `modules` outlives the unwinder. Without them, the innermost frame's caller is missing wherever
  // the chain does not lead to it.
  explicit FramePointerUnwinder(const UnwindModules* modules) noexcept : by_table_(modules) {}

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE WalkResult Unwind(const Registers& registers, const M& memory,
                                       std::span<Address> output) const noexcept {
    return Unwind(FrameState<Registers>{.registers = registers, .innermost = &registers}, memory,
                  output);
  }

  // From a frame on that an earlier walk stopped at.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE WalkResult Unwind(const FrameState<Registers>& from, const M& memory,
                                       std::span<Address> output) const noexcept {
    return internal::WalkFrames(from, output,
                                [&](FrameState<Registers>& state)
                                    STROBE_ALWAYS_INLINE_LAMBDA { return Step(state, memory); });
  }

 private:
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE StepResult Step(FrameState<Registers>& state,
                                                          const M& memory) const noexcept {
    if (!state.is_exact) [[likely]] {
      // The end of the chain. Main's caller often has argc in its fp.
      if (state.registers.fp < kLowestCode) return StepResult::kEnd;
      return FramePointerStep().Step(state, memory);
    }
    const StepResult result = by_table_.Step(state, memory);
    return result != StepResult::kUnknown ? result : FramePointerStep().Step(state, memory);
  }

  CfiStep by_table_;
};
static_assert(ResumableUnwinder<FramePointerUnwinder>);

}  // namespace strobe
