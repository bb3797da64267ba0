// The allocator behind: what the program would have without Strobe's functions. That is the C
// library's, or one that is linked or preloaded.
#pragma once

#include <atomic>
#include <cstddef>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Each function is the one that the program would get by that name: a block must not go to another
// allocator than it came from, and only an allocator knows which of its functions go together. What
// it lacks, the program has from the C library. The first call of any looks all up.
struct NextAllocator {
  std::atomic<void* (*)(std::size_t) noexcept> malloc;
  std::atomic<void* (*)(std::size_t, std::size_t) noexcept> calloc;
  std::atomic<void* (*)(void*, std::size_t) noexcept> realloc;
  std::atomic<void* (*)(std::size_t, std::size_t) noexcept> memalign;
  std::atomic<void* (*)(std::size_t, std::size_t) noexcept> aligned_alloc;
  std::atomic<int (*)(void**, std::size_t, std::size_t) noexcept> posix_memalign;
  std::atomic<void* (*)(std::size_t) noexcept> valloc;
  std::atomic<void* (*)(std::size_t) noexcept> pvalloc;
  std::atomic<void (*)(void*) noexcept> free;
  // What `operator new` and `operator delete` are built on. The aligned one takes what
  // aligned_alloc takes, and gives what `free` frees: a function that the object of `malloc` has.
  std::atomic<void* (*)(std::size_t) noexcept> new_plain;
  std::atomic<void* (*)(std::size_t, std::size_t) noexcept> new_aligned;
  std::atomic<void (*)(void*) noexcept> delete_any;
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
inline void* NextAlignedAlloc(std::size_t alignment, std::size_t size) noexcept {
  return next_allocator.aligned_alloc.load(std::memory_order_relaxed)(alignment, size);
}
inline int NextPosixMemalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  return next_allocator.posix_memalign.load(std::memory_order_relaxed)(result, alignment, size);
}
inline void* NextValloc(std::size_t size) noexcept {
  return next_allocator.valloc.load(std::memory_order_relaxed)(size);
}
inline void* NextPvalloc(std::size_t size) noexcept {
  return next_allocator.pvalloc.load(std::memory_order_relaxed)(size);
}
inline void NextFree(void* block) noexcept {
  return next_allocator.free.load(std::memory_order_relaxed)(block);
}
inline void* NextNew(std::size_t size) noexcept {
  return next_allocator.new_plain.load(std::memory_order_relaxed)(size);
}
inline void* NextAlignedNew(std::size_t alignment, std::size_t size) noexcept {
  return next_allocator.new_aligned.load(std::memory_order_relaxed)(alignment, size);
}
inline void NextDelete(void* block) noexcept {
  return next_allocator.delete_any.load(std::memory_order_relaxed)(block);
}

// Strobe's functions are weak definitions: one that the program's executable brings takes the place
// of ours when it is linked. Whether these are ours:
[[nodiscard]] bool IsOwnMalloc() noexcept;
[[nodiscard]] bool IsOwnRealloc() noexcept;

}  // namespace internal
}  // namespace strobe
