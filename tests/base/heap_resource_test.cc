#include "strobe/base/heap_resource.h"

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(HeapResource, HasAlignedMemoryForContainers) {
  std::pmr::vector<std::uint64_t> numbers(HeapResource::Get());
  for (std::uint64_t i = 0; i < 1000; ++i) numbers.push_back(i);
  EXPECT_EQ(numbers.back(), 999u);
  HeapResource& heap = *HeapResource::Get();
  for (const std::size_t alignment : {8, 16, 64, 4096}) {
    void* const block = heap.allocate(100, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    heap.deallocate(block, 100, alignment);
  }
}

TEST(HeapResource, IsOne) {
  EXPECT_TRUE(HeapResource::Get()->is_equal(*HeapResource::Get()));
  EXPECT_FALSE(HeapResource::Get()->is_equal(*std::pmr::null_memory_resource()));
}

}  // namespace
}  // namespace strobe::internal
