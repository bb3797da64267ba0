#include "../../src/allocations/sampled_allocations.h"

#include <cerrno>
#include <cstddef>
#include <optional>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(SampledAllocationsTest, WithoutASessionNothingIsKept) {
  int block = 0;
  errno = EINTR;
  EXPECT_EQ(TakeAllocation(&block, std::size_t{1} << 60), &block);
  EXPECT_EQ(TakeAllocation(nullptr, std::size_t{1} << 60), nullptr);
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(ForgetBlock(&block), std::nullopt);
  NoteFree(&block);
  NoteFree(nullptr);
}

TEST(SampledAllocationsTest, TheSamplerCountsUntilAPointIsReached) {
  // The first event of a thread is always taken; then the distance is drawn.
  AmountSampler sampler;
  ASSERT_TRUE(sampler.Count(1));
  static_cast<void>(sampler.Take(1, kMaxSamplingInterval, 1));
  EXPECT_TRUE(sampler.Count(std::size_t{1} << 62)) << "no distance is as long";
}

TEST(ZeroedTableTest, ItsZerosAreATable) {
  static constinit ZeroedTable<LiveBlocks<>> table;
  EXPECT_FALSE(table->is_used());
  int block = 0;
  EXPECT_FALSE(table->MayHold(&block));
  EXPECT_EQ(static_cast<void*>(&*table), static_cast<void*>(table.bytes));
}

}  // namespace
}  // namespace strobe::internal
