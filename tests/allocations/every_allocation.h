// A program's use of every function that allocates or frees. It says what each has given.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

extern "C" {
// Of small_allocator.cc, if the program has it.
__attribute__((weak)) int small_allocator_foreign_blocks();
// Where the allocator, or a later C library, has it.
__attribute__((weak)) void free_sized(void* block, std::size_t size);
}

namespace strobe::testing {

constexpr std::size_t kBlockBytes = 3000;

inline int ForeignBlocks() {
  return &small_allocator_foreign_blocks != nullptr ? small_allocator_foreign_blocks() : 0;
}

// Fills the block, grows it where realloc can, and frees it.
template <class Free>
void UseBlock(const char* name, void* block, std::size_t alignment, const Free& give_back) {
  const char* const what = block == nullptr ? "none"
                           : reinterpret_cast<std::uintptr_t>(block) % alignment == 0
                               ? "aligned"
                               : "misaligned";
  const int before = ForeignBlocks();
  if (block != nullptr) std::memset(block, 0x5A, kBlockBytes);
  give_back(block);
  std::printf("%s: %s, %d blocks of another allocator\n", name, what, ForeignBlocks() - before);
}

// jemalloc lacks pvalloc, and ends a program that frees the C library's blocks.
inline void UseMallocFamily(bool has_pvalloc) {
  const auto by_free = [](void* block) { std::free(block); };
  const auto by_realloc = [](void* block) { std::free(std::realloc(block, 2 * kBlockBytes)); };
  for (int i = 0; i < 2; ++i) {
    UseBlock("malloc", std::malloc(kBlockBytes), 16, by_free);
    UseBlock("calloc", std::calloc(3, kBlockBytes), 16, by_realloc);
    UseBlock("realloc", std::realloc(nullptr, kBlockBytes), 16, by_realloc);
    UseBlock("reallocarray", reallocarray(std::malloc(10), 3, kBlockBytes), 16, by_free);
    UseBlock("aligned_alloc", std::aligned_alloc(64, 64 * 50), 64, by_free);
    UseBlock("memalign", memalign(256, kBlockBytes), 256, by_realloc);
    void* block = nullptr;
    const int error = posix_memalign(&block, 512, kBlockBytes);
    UseBlock("posix_memalign", error == 0 ? block : nullptr, 512, by_free);
    UseBlock("valloc", valloc(kBlockBytes), 4096, by_free);
    if (has_pvalloc) UseBlock("pvalloc", pvalloc(kBlockBytes), 4096, by_realloc);
    UseBlock("free_sized", std::malloc(kBlockBytes), 16, [](void* sized) {
      if (&free_sized != nullptr) return free_sized(sized, kBlockBytes);
      std::free(sized);
    });
  }
  void* const block = std::malloc(kBlockBytes);
  std::printf("malloc_usable_size: %d\n", static_cast<int>(malloc_usable_size(block) != 0));
  std::free(block);
}

inline void UseNew() {
  constexpr std::align_val_t kAlignment{128};
  UseBlock("new", ::operator new(kBlockBytes), 16, [](void* block) { ::operator delete(block); });
  UseBlock("new[]", ::operator new[](kBlockBytes), 16,
           [](void* block) { ::operator delete[](block); });
  UseBlock("nothrow new", ::operator new(kBlockBytes, std::nothrow), 16,
           [](void* block) { ::operator delete(block, std::nothrow); });
  UseBlock("aligned new", ::operator new(kBlockBytes, kAlignment), 128,
           [](void* block) { ::operator delete(block, kAlignment); });
}

// What libraries allocate, and the program frees.
inline void UseLibraries() {
  char* text = nullptr;
  if (asprintf(&text, "%d words", 7) < 0) std::abort();
  char* const copy = strdup(text);
  std::printf("%s, %s\n", text, copy);
  std::free(text);
  std::free(copy);
  std::free(realpath("/", nullptr));
}

inline void UseEveryFunction(bool has_pvalloc) {
  UseMallocFamily(has_pvalloc);
  UseNew();
  UseLibraries();
  std::thread thread([has_pvalloc] {
    UseMallocFamily(has_pvalloc);
    UseNew();
  });
  thread.join();
  // Enough to be sampled: a hundred times the mean distance of two samples.
  for (int i = 0; i < 200; ++i) {
    void* volatile block = std::malloc(std::size_t{1} << 20);
    std::free(block);
  }
  std::printf("%d blocks of another allocator in all\n", ForeignBlocks());
}

}  // namespace strobe::testing
