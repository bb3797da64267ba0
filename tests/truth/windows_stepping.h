// A thread of this process that runs code one instruction at a time: with the trap flag, so that
// each instruction raises an exception, which a vectored handler handles on the same stack, below.
#pragma once

#include <windows.h>
// After it.
#include <cstddef>

namespace strobe::testing {

class StepObserver {
 public:
  StepObserver() = default;
  StepObserver(const StepObserver&) = delete;
  StepObserver& operator=(const StepObserver&) = delete;
  virtual ~StepObserver() = default;

  // On the stepped thread, before the instruction at context.Rip. What ran just before was not
  // stepped if `is_after_gap`. May not allocate or wait: the thread may hold any lock. False ends
  // the stepping.
  virtual bool BeforeInstruction(const CONTEXT& context, bool is_after_gap) = 0;
};

// Steps a thread of its own through `code`, with a seed that counts, again and again until
// `observer` has enough.
void RunSteps(StepObserver& observer, void (*code)(unsigned seed));

namespace internal {
// The thread steps, but not lately.
inline volatile bool is_stepping_interrupted = false;
}  // namespace internal

// For code that is stepped: to step through the dispatch of an exception would be to raise another
// one in the middle of it, so that is left out, and what catches the exception calls this. Does
// nothing if no thread steps.
__attribute__((always_inline)) inline void ContinueStepping() {
  if (internal::is_stepping_interrupted)
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tnop" ::: "memory", "cc");
}

}  // namespace strobe::testing
