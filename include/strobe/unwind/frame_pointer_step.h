// FramePointerStep: from one frame to its caller by the frame pointer.
#pragma once

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// One frame by its frame pointer: (sp, pc, fp) = (fp + 16, [fp + 8], [fp]). For code that nothing
// else is known of. Where fp is zero or another small number, the code uses that register for
// something else: only unwind information says of a frame that it is the outermost.
class FramePointerStep {
 public:
  FramePointerStep() = default;

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE StepResult Step(FrameState<Registers>& state, const M& memory) const noexcept {
    const Address fp = state.registers.fp;
    Address pc = 0;
    Address caller_fp = 0;
    if (fp < kLowestCode) return StepResult::kUnknown;
    if (fp < state.registers.sp || (fp & 7) != 0 || !memory.ReadWord(fp + 8, pc) ||
        !memory.ReadWord(fp, caller_fp)) {
      return StepResult::kBroken;
    }
    state.rule = kRule;
    return internal::Return(state, pc, fp + 16, caller_fp, false);
  }

 private:
  static constexpr UnwindRule kRule = UnwindRule::Frame(UnwindRule::Kind::kFromFp, 2, 1, 2);
};
static_assert(FrameStep<FramePointerStep>);

}  // namespace strobe
