// An allocator of about forty lines, which gives each block once. It knows its own blocks, and
// counts those of others that come to it: where two allocators are mixed. Compile it with
// -DLACKS_<function> for one that lacks a function.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 36;
char* begin = nullptr;
std::size_t used = 0;
int foreign = 0;

void* Get(std::size_t alignment, std::size_t size) {
  static const bool is_mapped = [] {
    begin = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return begin != MAP_FAILED;
  }();
  if (!is_mapped || size > kBytes / 4) return nullptr;
  const std::size_t head = sizeof(std::size_t) * 2;
  const std::size_t multiple = alignment < 16 ? 16 : alignment;
  const std::size_t taken =
      __atomic_fetch_add(&used, size + head + multiple, __ATOMIC_RELAXED) + head + multiple - 1;
  if (taken > kBytes / 2) return nullptr;
  const std::size_t at = taken / multiple * multiple;
  std::memcpy(begin + at - head, &size, sizeof(size));
  return begin + at;
}
bool IsOwn(const void* block) {
  const auto* const at = static_cast<const char*>(block);
  if (begin != nullptr && at >= begin && at < begin + kBytes) return true;
  foreign += block != nullptr ? 1 : 0;
  return false;
}
std::size_t SizeOf(const void* block) {
  std::size_t size = 0;
  if (IsOwn(block))
    std::memcpy(&size, static_cast<const char*>(block) - 2 * sizeof(size), sizeof(size));
  return size;
}
void* Move(void* block, std::size_t size) {
  void* const moved = Get(1, size);
  const std::size_t before = SizeOf(block);
  if (moved != nullptr && before != 0) std::memcpy(moved, block, before < size ? before : size);
  return moved;
}

}  // namespace

extern "C" {

int small_allocator_foreign_blocks() { return foreign; }

void* malloc(std::size_t size) { return Get(1, size); }
void* calloc(std::size_t count, std::size_t size) { return Get(1, count * size); }
void* realloc(void* block, std::size_t size) { return Move(block, size); }
void free(void* block) { static_cast<void>(IsOwn(block)); }
#ifndef LACKS_aligned_alloc
void* aligned_alloc(std::size_t alignment, std::size_t size) { return Get(alignment, size); }
#endif
#ifndef LACKS_memalign
void* memalign(std::size_t alignment, std::size_t size) { return Get(alignment, size); }
#endif
#ifndef LACKS_posix_memalign
int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  *result = Get(alignment, size);
  return 0;
}
#endif
#ifndef LACKS_valloc
void* valloc(std::size_t size) { return Get(4096, size); }
#endif
#ifndef LACKS_pvalloc
void* pvalloc(std::size_t size) { return Get(4096, (size + 4095) / 4096 * 4096); }
#endif
#ifndef LACKS_malloc_usable_size
std::size_t malloc_usable_size(void* block) { return SizeOf(block); }
#endif
#ifndef LACKS_reallocarray
void* reallocarray(void* block, std::size_t count, std::size_t size) {
  return Move(block, count * size);
}
#endif
#ifndef LACKS_free_sized
void free_sized(void* block, std::size_t /*size*/) { static_cast<void>(IsOwn(block)); }
#endif
}
