// ChainUnwinder: an unwinder made of steps. For each frame the first step that knows its code.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include "strobe/base/signal_safe.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/frame_pointer_step.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/incremental_walk.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe {

// ChainUnwinder<CfiStep, FramePointerStep>: call frame information where there is some, frame
// pointers in between, as in the code of a JIT compiler. A frame that an earlier step knows to be
// broken, or could unwind if it only had a register, ends the walk: a later step would invent.
template <FrameStep... Steps>
class ChainUnwinder {
 public:
  ChainUnwinder() = default;
  explicit ChainUnwinder(const UnwindModules* modules) noexcept
      : modules_(modules), steps_(Make<Steps>(modules)...) {}

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult
  Unwind(const Registers& registers, const M& memory, std::span<Address> output) const noexcept {
    return internal::WalkFrames(registers, output,
                                [&](FrameState<Registers>& state)
                                    STROBE_ALWAYS_INLINE_LAMBDA { return Step(state, memory); });
  }

  // From a frame on that an earlier walk stopped at.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult
  Unwind(const FrameState<Registers>& from, const M& memory,
         std::span<Address> output) const noexcept {
    return internal::WalkFrames(
        from, output, [&](FrameState<Registers>& state) noexcept { return Step(state, memory); });
  }

  // A step that reads more than the state, the memory and the modules has no place here: what it
  // reads may change between two walks.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult
  Unwind(const Registers& registers, const M& memory, internal::WalkMemo& memo,
         std::span<Address> output) const noexcept {
    return internal::WalkFrames(registers, memory, memo,
                                modules_ == nullptr ? 0 : modules_->serial(), output,
                                [&](FrameState<Registers>& state)
                                    STROBE_ALWAYS_INLINE_LAMBDA { return Step(state, memory); });
  }

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE StepResult Step(FrameState<Registers>& state,
                                                          const M& memory) const noexcept {
    return StepByFrom<0>(state, memory);
  }

 private:
  // By the first step from number kFirst on that knows the code.
  template <std::size_t kFirst, class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE StepResult StepByFrom(FrameState<Registers>& state,
                                                                const M& memory) const noexcept {
    if constexpr (kFirst == sizeof...(Steps)) {
      return StepResult::kUnknown;
    } else {
      const StepResult result = std::get<kFirst>(steps_).Step(state, memory);
      return result != StepResult::kUnknown ? result : StepByFrom<kFirst + 1>(state, memory);
    }
  }

  template <class S>
  static S Make(const UnwindModules* modules) noexcept {
    if constexpr (std::constructible_from<S, const UnwindModules*>) {
      return S(modules);
    } else {
      return S();
    }
  }

  const UnwindModules* modules_ = nullptr;
  std::tuple<Steps...> steps_;
};
static_assert(Unwinder<ChainUnwinder<CfiStep, FramePointerStep>>);
static_assert(ResumableUnwinder<ChainUnwinder<CfiStep, FramePointerStep>>);

}  // namespace strobe
