#include "../../src/allocations/next_allocator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();

TEST(NextAllocatorTest, ItsBlocksAreTheProgramsToo) {
  void* const first = NextMalloc(100);
  ASSERT_NE(first, nullptr);
  std::memset(first, 1, 100);
  std::free(first);
  void* const second = std::malloc(100);
  ASSERT_NE(second, nullptr);
  NextFree(second);
  NextFree(nullptr);
}

TEST(NextAllocatorTest, CallocGivesZeros) {
  auto* const block = static_cast<unsigned char*>(NextCalloc(50, 40));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(std::count(block, block + 2000, 0), 2000);
  NextFree(block);
}

TEST(NextAllocatorTest, ReallocKeepsTheContent) {
  auto* block = static_cast<unsigned char*>(NextMalloc(10));
  ASSERT_NE(block, nullptr);
  std::memset(block, 7, 10);
  block = static_cast<unsigned char*>(NextRealloc(block, 100'000));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(std::count(block, block + 10, 7), 10);
  NextFree(block);
  block = static_cast<unsigned char*>(NextRealloc(nullptr, 10));
  EXPECT_NE(block, nullptr) << "as malloc";
  NextFree(block);
}

TEST(NextAllocatorTest, MemalignAligns) {
  for (const std::size_t alignment : {16, 256, 8192}) {
    void* const block = NextMemalign(alignment, 23 * alignment);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    NextFree(block);
  }
}

TEST(NextAllocatorTest, EveryAlignedFormGivesWhatItsCounterpartFrees) {
  const auto is_aligned = [](const void* block, std::size_t alignment) {
    return block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
  };
  void* block = NextAlignedAlloc(64, 640);
  EXPECT_TRUE(is_aligned(block, 64));
  NextFree(block);
  ASSERT_EQ(NextPosixMemalign(&block, 128, 100), 0);
  EXPECT_TRUE(is_aligned(block, 128));
  NextFree(block);
  EXPECT_NE(NextPosixMemalign(&block, 3, 100), 0) << "no power of two";
  block = NextValloc(100);
  EXPECT_TRUE(is_aligned(block, 4096));
  NextFree(block);
  block = NextNew(100);
  EXPECT_TRUE(is_aligned(block, 16));
  NextDelete(block);
  block = NextAlignedNew(256, 23 * 256);  // mimalloc 2.0.9 does not align one of 512
  EXPECT_TRUE(is_aligned(block, 256));
  NextDelete(block);
  NextDelete(nullptr);
}

TEST(NextAllocatorTest, OursAreTheProgramsWhereItHasNoOthers) {
  EXPECT_TRUE(IsOwnMalloc());
  EXPECT_TRUE(IsOwnRealloc());
  // Then `operator new` passes the counting functions by.
  EXPECT_EQ(next_allocator.new_plain.load(), next_allocator.malloc.load());
  EXPECT_EQ(next_allocator.delete_any.load(), next_allocator.free.load());
}

TEST(NextAllocatorTest, WhatIsTooLargeIsRefused) {
  const volatile std::size_t too_large = kMax / 2 + 1;  // so that no compiler warns of it
  EXPECT_EQ(NextMalloc(too_large), nullptr);
  EXPECT_EQ(NextCalloc(too_large, 2), nullptr) << "the product overflows";
}

}  // namespace
}  // namespace strobe::internal
