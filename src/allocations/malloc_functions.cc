// The malloc family, in front of the program's own allocator.
#include <malloc.h>
#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "allocate.h"
#include "strobe/base/page.h"
#include "strobe/base/visibility.h"

using strobe::internal::Allocated;
using strobe::internal::ForgetBlock;
using strobe::internal::live_blocks;
using strobe::internal::LiveBlock;
using strobe::internal::NextAlignedAlloc;
using strobe::internal::NextCalloc;
using strobe::internal::NextFree;
using strobe::internal::NextMalloc;
using strobe::internal::NextMemalign;
using strobe::internal::NextPosixMemalign;
using strobe::internal::NextPvalloc;
using strobe::internal::NextRealloc;
using strobe::internal::NextValloc;
using strobe::internal::NoteFree;
using strobe::internal::RememberBlock;

namespace {

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
// definition has what its declaration has. Weak, so that an allocator in the executable is not
// mixed with ours: the linker takes its functions, of which ours then know nothing.
#pragma GCC visibility push(default)
extern "C" {

[[gnu::weak]] void* malloc(std::size_t size) noexcept(noexcept(malloc(size))) {
  return Allocated(size, [size] { return NextMalloc(size); });
}

[[gnu::weak]] void* calloc(std::size_t count,
                           std::size_t size) noexcept(noexcept(calloc(count, size))) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = 0;  // the allocator will refuse it
  return Allocated(bytes, [count, size] { return NextCalloc(count, size); });
}

[[gnu::weak]] void free(void* block) noexcept(noexcept(free(block))) {
  NoteFree(block);
  NextFree(block);
}
// These two do what the program's own `free` does. Many an allocator lacks them.
[[gnu::weak]] void free_sized(void* block, std::size_t /*size*/) noexcept { free(block); }
[[gnu::weak]] void free_aligned_sized(void* block, std::size_t /*alignment*/,
                                      std::size_t /*size*/) noexcept {
  free(block);
}

[[gnu::weak]] void* realloc(void* block,
                            std::size_t size) noexcept(noexcept(realloc(block, size))) {
  return Allocated(size, [block, size] { return Reallocate(block, size); });
}

// Does what the program's own `realloc` does, as that of the C library.
[[gnu::weak]] void* reallocarray(void* block, std::size_t count,
                                 std::size_t size) noexcept(noexcept(reallocarray(block, count,
                                                                                  size))) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (!strobe::internal::IsOwnRealloc()) return realloc(block, bytes);
  return Allocated(bytes, [block, bytes] { return Reallocate(block, bytes); });
}

[[gnu::weak]] void* memalign(std::size_t alignment,
                             std::size_t size) noexcept(noexcept(memalign(alignment, size))) {
  return Allocated(size, [alignment, size] { return NextMemalign(alignment, size); });
}

[[gnu::weak]] void* aligned_alloc(std::size_t alignment,
                                  std::size_t size) noexcept(noexcept(aligned_alloc(alignment,
                                                                                    size))) {
  return Allocated(size, [alignment, size] { return NextAlignedAlloc(alignment, size); });
}

[[gnu::weak]] int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept(
    noexcept(posix_memalign(result, alignment, size))) {
  int error = 0;
  static_cast<void>(Allocated(size, [&] {
    error = NextPosixMemalign(result, alignment, size);
    return error == 0 ? *result : nullptr;
  }));
  return error;
}

[[gnu::weak]] void* valloc(std::size_t size) noexcept(noexcept(valloc(size))) {
  return Allocated(size, [size] { return NextValloc(size); });
}

[[gnu::weak]] void* pvalloc(std::size_t size) noexcept(noexcept(valloc(size))) {
  const bool is_refused = size > SIZE_MAX - strobe::internal::kPageBytes;
  return Allocated(is_refused ? 0 : strobe::internal::RoundUpToPages(size),
                   [size] { return NextPvalloc(size); });
}

}  // extern "C"
#pragma GCC visibility pop

// Ours, whatever the program has by the other names.
extern "C" {
STROBE_HIDDEN void* strobe_own_malloc(std::size_t size) noexcept
    __attribute__((alias("malloc"), malloc, alloc_size(1)));
STROBE_HIDDEN void* strobe_own_realloc(void* block, std::size_t size) noexcept
    __attribute__((alias("realloc"), alloc_size(2)));
}

namespace strobe::internal {
namespace {

// A compiler may take functions with two names for two.
template <class Function>
bool IsSame(Function* one, Function* other) {
  asm volatile("" : "+r"(one), "+r"(other));
  return one == other;
}

}  // namespace

bool IsOwnMalloc() noexcept { return IsSame<void*(std::size_t)>(&malloc, &strobe_own_malloc); }
bool IsOwnRealloc() noexcept {
  return IsSame<void*(void*, std::size_t)>(&realloc, &strobe_own_realloc);
}

}  // namespace strobe::internal
