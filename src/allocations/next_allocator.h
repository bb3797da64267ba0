// The allocator behind: that of the C library, or one that is linked or preloaded.
#pragma once

#include <atomic>
#include <cstddef>

#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Five functions, on which all others are built: an allocator may lack some of the others, and a
// block must not go to another allocator than it came from. The first call of any looks all up.
struct NextAllocator {
  std::atomic<void* (*)(std::size_t) noexcept> malloc;
  std::atomic<void* (*)(std::size_t, std::size_t) noexcept> calloc;
  std::atomic<void* (*)(void*, std::size_t) noexcept> realloc;
  std::atomic<void* (*)(std::size_t, std::size_t) noexcept> memalign;
  std::atomic<void (*)(void*) noexcept> free;
};
extern constinit NextAllocator next_allocator;

inline void* NextMalloc(std::size_t size) noexcept {
  return next_allocator.malloc.load(std::memory_order_relaxed)(size);
}
inline void* NextCalloc(std::size_t count, std::size_t size) noexcept {
  return next_allocator.calloc.load(std::memory_order_relaxed)(count, size);
}
inline void* NextRealloc(void* block, std::size_t size) noexcept {
  return next_allocator.realloc.load(std::memory_order_relaxed)(block, size);
}
inline void* NextMemalign(std::size_t alignment, std::size_t size) noexcept {
  return next_allocator.memalign.load(std::memory_order_relaxed)(alignment, size);
}
inline void NextFree(void* block) noexcept {
  return next_allocator.free.load(std::memory_order_relaxed)(block);
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
