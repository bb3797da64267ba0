// FilteredUnwinder: an unwinder that asks a function of the program, on the sampled thread, whether
// the sample counts.
#pragma once

#include <atomic>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/fetched_stack_memory.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe::internal {

// The filter of the process. Written while no session runs.
struct SampleFilter {
  using Function = int (*)(void* argument);
  static constinit inline std::atomic<Function> function{nullptr};
  static constinit inline std::atomic<void*> argument{nullptr};
  // The samples that were taken and not left out, since the process began.
  static constinit inline std::atomic<int> taken{0};

  STROBE_SIGNAL_SAFE static bool Takes() noexcept {
    const Function filter = function.load(std::memory_order_relaxed);
    if (filter != nullptr && filter(argument.load(std::memory_order_relaxed)) == 0) return false;
    taken.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
};

// A sample that the filter leaves out has no frames. What is walked on another thread is not asked
// about: stacks of threads that wait, and the rest of walks that began with a sample.
template <class U>
class FilteredUnwinder : public U {
 public:
  using U::U;
  using U::Unwind;

  // The walks on the sampled thread: of its own stack, and of another that it runs on.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE WalkResult
  Unwind(const Registers& registers, const M& memory, WalkMemo& memo,
         std::span<Address> output) const noexcept {
    if (SampleFilter::Takes()) [[likely]]
      return U::Unwind(registers, memory, memo, output);
    memo.Clear();
    return {};
  }
  template <class Registers, auto kRead>
  STROBE_SIGNAL_SAFE WalkResult Unwind(const Registers& registers,
                                       const FetchedStackMemory<kRead>& memory,
                                       std::span<Address> output) const noexcept {
    return SampleFilter::Takes() ? U::Unwind(registers, memory, output) : WalkResult{};
  }
};

}  // namespace strobe::internal
