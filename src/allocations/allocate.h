// One allocation: counted, and made by the next allocator. Data plane.
#pragma once

#include <cstddef>

#include "next_allocator.h"
#include "sampled_allocations.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Returns make(). Becomes part of the allocation function, so that the function's frame is the only
// one between TakeAllocation and the caller.
template <class Make>
STROBE_ALWAYS_INLINE void* Allocated(std::size_t size, const Make& make) {
  if (allocation_sampler.Count(size)) [[unlikely]] {
    void* block = TakeAllocation(make(), size);
    asm volatile("" : "+r"(block));  // no tail call
    return block;
  }
  return make();
}

}  // namespace internal
}  // namespace strobe
