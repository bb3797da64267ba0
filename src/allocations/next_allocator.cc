#include "next_allocator.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "strobe/base/page.h"

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

// In libc.a, this function is in one file with malloc. So a static program has that malloc, and not
// ours, before dlsym finds none.
__attribute__((used)) const auto kSharedLibrary = &malloc_usable_size;

// True while the calling thread looks the functions up. The loader allocates only for an error's
// text, and has another text for the case that it gets no memory.
constinit thread_local bool is_looking_up __attribute__((tls_model("initial-exec"))) = false;

// What a C library that lacks a function has in its place.
int PosixMemalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!is_power || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved_errno = errno;
  void* const block = NextMemalign(alignment, size);
  errno = saved_errno;
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}
void* Valloc(std::size_t size) noexcept { return NextMemalign(kPageBytes, size); }
void* Pvalloc(std::size_t size) noexcept {
  if (size <= SIZE_MAX - kPageBytes) return NextMemalign(kPageBytes, RoundUpToPages(size));
  errno = ENOMEM;
  return nullptr;
}

void* AlignedByPosixMemalign(std::size_t alignment, std::size_t size) noexcept {
  void* block = nullptr;
  const std::size_t accepted = alignment < sizeof(void*) ? sizeof(void*) : alignment;
  return NextPosixMemalign(&block, accepted, size) == 0 ? block : nullptr;
}

// What the program gets by these names, which may be functions of its own executable.
void* ProgramsMalloc(std::size_t size) noexcept { return ::malloc(size); }
void* ProgramsAlignedAlloc(std::size_t alignment, std::size_t size) noexcept {
  return ::aligned_alloc(alignment, size);
}
void ProgramsFree(void* block) noexcept { ::free(block); }

template <class Function>
void LookUp(std::atomic<Function>& function, const char* name, Function fallback) {
  const auto found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  function.store(found != nullptr ? found : fallback, std::memory_order_relaxed);
}

// The object that has the function behind; nullptr if the loader does not know.
template <class Function>
const void* ObjectOf(const std::atomic<Function>& function) {
  Dl_info info{};
  const auto address = reinterpret_cast<const void*>(function.load(std::memory_order_relaxed));
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Without Strobe, some C++ libraries would take aligned_alloc, and some posix_memalign. A block of
// either can be freed only where it is one of the allocator that frees.
void ChooseAlignedNew() {
  const void* const allocator = ObjectOf(next_allocator.malloc);
  auto chosen = next_allocator.aligned_alloc.load(std::memory_order_relaxed);
  if (ObjectOf(next_allocator.aligned_alloc) != allocator) {
    if (ObjectOf(next_allocator.posix_memalign) == allocator) {
      chosen = &AlignedByPosixMemalign;
    } else if (ObjectOf(next_allocator.memalign) == allocator) {
      chosen = next_allocator.memalign.load(std::memory_order_relaxed);
    }
  }
  next_allocator.new_aligned.store(chosen, std::memory_order_relaxed);
}

// False if this is a call in the look-up itself.
bool LookUpAll() {
  if (is_looking_up) {
    errno = ENOMEM;
    return false;
  }
  is_looking_up = true;
  NextAllocator& next = next_allocator;
  constexpr auto kOrder = std::memory_order_relaxed;
  const bool has_other = !IsOwnMalloc();
  // In this order, so that no block is allocated by a function whose counterpart is not known.
  LookUp(next.free, "free", &__libc_free);
  next.delete_any.store(has_other ? &ProgramsFree : next.free.load(kOrder), kOrder);
  LookUp(next.memalign, "memalign", &__libc_memalign);
  LookUp(next.aligned_alloc, "aligned_alloc", next.memalign.load(kOrder));
  LookUp(next.posix_memalign, "posix_memalign", &PosixMemalign);
  LookUp(next.valloc, "valloc", &Valloc);
  LookUp(next.pvalloc, "pvalloc", &Pvalloc);
  LookUp(next.realloc, "realloc", &__libc_realloc);
  LookUp(next.calloc, "calloc", &__libc_calloc);
  LookUp(next.malloc, "malloc", &__libc_malloc);
  // With an allocator in the executable, `operator new` is built on that one, as it would be.
  if (has_other) {
    next.new_aligned.store(&ProgramsAlignedAlloc, kOrder);
  } else {
    ChooseAlignedNew();
  }
  next.new_plain.store(has_other ? &ProgramsMalloc : next.malloc.load(kOrder), kOrder);
  is_looking_up = false;
  return true;
}

template <auto kFunction, class... Arguments>
void* First(Arguments... arguments) noexcept {
  if (!LookUpAll()) return nullptr;
  return (next_allocator.*kFunction).load(std::memory_order_relaxed)(arguments...);
}
int FirstPosixMemalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  return LookUpAll() ? NextPosixMemalign(result, alignment, size) : ENOMEM;
}
template <auto kFunction>
void FirstFree(void* block) noexcept {
  if (block != nullptr && LookUpAll())
    (next_allocator.*kFunction).load(std::memory_order_relaxed)(block);
}

using Size = std::size_t;

}  // namespace

constinit NextAllocator next_allocator{
    .malloc = &First<&NextAllocator::malloc, Size>,
    .calloc = &First<&NextAllocator::calloc, Size, Size>,
    .realloc = &First<&NextAllocator::realloc, void*, Size>,
    .memalign = &First<&NextAllocator::memalign, Size, Size>,
    .aligned_alloc = &First<&NextAllocator::aligned_alloc, Size, Size>,
    .posix_memalign = &FirstPosixMemalign,
    .valloc = &First<&NextAllocator::valloc, Size>,
    .pvalloc = &First<&NextAllocator::pvalloc, Size>,
    .free = &FirstFree<&NextAllocator::free>,
    .new_plain = &First<&NextAllocator::new_plain, Size>,
    .new_aligned = &First<&NextAllocator::new_aligned, Size, Size>,
    .delete_any = &FirstFree<&NextAllocator::delete_any>};

}  // namespace strobe::internal
