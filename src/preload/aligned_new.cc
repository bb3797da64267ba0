// The aligned forms of `operator new` for this library alone, on `malloc`. Those of the C++ library
// take blocks of aligned_alloc and give them to `free`. Where the program's allocator lacks
// aligned_alloc, that is the C library's, and `free` is not: a program that itself never does so
// would end by our own objects.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

// What lies before each block: what malloc gave.
using Head = void*;

void* Allocate(std::size_t size, std::align_val_t alignment) {
  const auto multiple = static_cast<std::size_t>(alignment);
  const std::size_t more = multiple + sizeof(Head);
  void* const given = size <= SIZE_MAX - more ? std::malloc(size + more) : nullptr;
  if (given == nullptr) throw std::bad_alloc();
  const auto first = reinterpret_cast<std::uintptr_t>(given) + sizeof(Head);
  // Reached from what malloc gave, so that a compiler knows where it points.
  void* const block =
      static_cast<char*>(given) + sizeof(Head) + (multiple - first % multiple) % multiple;
  static_cast<Head*>(block)[-1] = given;
  return block;
}

void Free(void* block) noexcept {
  if (block != nullptr) std::free(static_cast<Head*>(block)[-1]);
}

}  // namespace

void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, alignment);
}
void operator delete(void* block, std::align_val_t /*alignment*/) noexcept { Free(block); }
void operator delete[](void* block, std::align_val_t /*alignment*/) noexcept { Free(block); }
void operator delete(void* block, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  Free(block);
}
void operator delete[](void* block, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  Free(block);
}
