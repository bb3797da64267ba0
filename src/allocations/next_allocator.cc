#include "next_allocator.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstdlib>

// The C library's own, by names that nothing interposes.
extern "C" {
void* __libc_malloc(std::size_t size) noexcept __attribute__((weak));
void* __libc_calloc(std::size_t count, std::size_t size) noexcept __attribute__((weak));
void* __libc_realloc(void* block, std::size_t size) noexcept __attribute__((weak));
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept __attribute__((weak));
void __libc_free(void* block) noexcept __attribute__((weak));
}

namespace strobe::internal {
namespace {

// In libc.a, this function is in one file with malloc. So a static program has two of that name,
// and the linker says so, before dlsym finds none.
__attribute__((used)) const auto kSharedLibrary = &malloc_usable_size;

// True while the calling thread looks the functions up. The loader allocates only for an error's
// text, and has another text for the case that it gets no memory.
constinit thread_local bool is_looking_up __attribute__((tls_model("initial-exec"))) = false;

template <class Function>
void LookUp(std::atomic<Function>& function, const char* name, Function fallback) {
  const auto found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  function.store(found != nullptr ? found : fallback, std::memory_order_relaxed);
}

// False if this is a call in the look-up itself.
bool LookUpAll() {
  if (is_looking_up) {
    errno = ENOMEM;
    return false;
  }
  is_looking_up = true;
  // In this order, so that no block is allocated by a function whose counterpart is not known.
  LookUp(next_allocator.free, "free", &__libc_free);
  LookUp(next_allocator.memalign, "memalign", &__libc_memalign);
  LookUp(next_allocator.realloc, "realloc", &__libc_realloc);
  LookUp(next_allocator.calloc, "calloc", &__libc_calloc);
  LookUp(next_allocator.malloc, "malloc", &__libc_malloc);
  is_looking_up = false;
  return true;
}

void* FirstMalloc(std::size_t size) noexcept { return LookUpAll() ? NextMalloc(size) : nullptr; }
void* FirstCalloc(std::size_t count, std::size_t size) noexcept {
  return LookUpAll() ? NextCalloc(count, size) : nullptr;
}
void* FirstRealloc(void* block, std::size_t size) noexcept {
  return LookUpAll() ? NextRealloc(block, size) : nullptr;
}
void* FirstMemalign(std::size_t alignment, std::size_t size) noexcept {
  return LookUpAll() ? NextMemalign(alignment, size) : nullptr;
}
void FirstFree(void* block) noexcept {
  if (block != nullptr && LookUpAll()) NextFree(block);
}

}  // namespace

constinit NextAllocator next_allocator{.malloc = &FirstMalloc,
                                       .calloc = &FirstCalloc,
                                       .realloc = &FirstRealloc,
                                       .memalign = &FirstMemalign,
                                       .free = &FirstFree};

}  // namespace strobe::internal
