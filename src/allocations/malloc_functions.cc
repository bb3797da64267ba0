// The malloc family, in front of the program's own allocator.
#include <malloc.h>
#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "allocate.h"
#include "strobe/base/page.h"

using strobe::internal::Allocated;
using strobe::internal::ForgetBlock;
using strobe::internal::live_blocks;
using strobe::internal::LiveBlock;
using strobe::internal::NextCalloc;
using strobe::internal::NextFree;
using strobe::internal::NextMalloc;
using strobe::internal::NextMemalign;
using strobe::internal::NextRealloc;
using strobe::internal::NoteFree;
using strobe::internal::RememberBlock;

namespace {

using strobe::internal::kPageBytes;

bool IsPowerOfTwo(std::size_t number) { return number != 0 && (number & (number - 1)) == 0; }

// Frees the old block and allocates the new one, also where both have one address. If there is no
// memory, the old block stays.
STROBE_ALWAYS_INLINE void* Reallocate(void* block, std::size_t size) {
  if (!live_blocks->MayHold(block)) [[likely]]
    return NextRealloc(block, size);
  const std::optional<LiveBlock> old = ForgetBlock(block);
  void* const moved = NextRealloc(block, size);
  if (moved == nullptr && size != 0 && old) RememberBlock(block, *old);
  return moved;
}

}  // namespace

// Shared libraries call them, too. In glibc's headers they are noexcept, in musl's they are not: a
// definition has what its declaration has.
#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t size) noexcept(noexcept(malloc(size))) {
  return Allocated(size, [size] { return NextMalloc(size); });
}

void* calloc(std::size_t count, std::size_t size) noexcept(noexcept(calloc(count, size))) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = 0;  // the allocator will refuse it
  return Allocated(bytes, [count, size] { return NextCalloc(count, size); });
}

void free(void* block) noexcept(noexcept(free(block))) {
  NoteFree(block);
  NextFree(block);
}
void free_sized(void* block, std::size_t /*size*/) noexcept {
  NoteFree(block);
  NextFree(block);
}
void free_aligned_sized(void* block, std::size_t /*alignment*/, std::size_t /*size*/) noexcept {
  NoteFree(block);
  NextFree(block);
}

void* realloc(void* block, std::size_t size) noexcept(noexcept(realloc(block, size))) {
  return Allocated(size, [block, size] { return Reallocate(block, size); });
}

void* reallocarray(void* block, std::size_t count,
                   std::size_t size) noexcept(noexcept(reallocarray(block, count, size))) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return Allocated(bytes, [block, bytes] { return Reallocate(block, bytes); });
}

void* memalign(std::size_t alignment,
               std::size_t size) noexcept(noexcept(memalign(alignment, size))) {
  return Allocated(size, [alignment, size] { return NextMemalign(alignment, size); });
}

void* aligned_alloc(std::size_t alignment,
                    std::size_t size) noexcept(noexcept(aligned_alloc(alignment, size))) {
  return Allocated(size, [alignment, size] { return NextMemalign(alignment, size); });
}

int posix_memalign(void** result, std::size_t alignment,
                   std::size_t size) noexcept(noexcept(posix_memalign(result, alignment, size))) {
  if (!IsPowerOfTwo(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved_errno = errno;
  void* const block = Allocated(size, [alignment, size] { return NextMemalign(alignment, size); });
  errno = saved_errno;
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

void* valloc(std::size_t size) noexcept(noexcept(valloc(size))) {
  return Allocated(size, [size] { return NextMemalign(kPageBytes, size); });
}

void* pvalloc(std::size_t size) noexcept(noexcept(valloc(size))) {
  if (size > SIZE_MAX - kPageBytes) {
    errno = ENOMEM;
    return nullptr;
  }
  const std::size_t bytes = strobe::internal::RoundUpToPages(size);
  return Allocated(bytes, [bytes] { return NextMemalign(kPageBytes, bytes); });
}

}  // extern "C"
#pragma GCC visibility pop
