#include "strobe/aggregate/moment_table.h"

#include <gtest/gtest.h>

#include <array>

namespace strobe {
namespace {

using Values = std::array<std::int64_t, 2>;

TEST(MomentTable, HasWhatWasAddedInItsOrder) {
  constexpr std::int64_t kMoments = 3000;
  MemoryBudget budget(1 << 24);
  MomentTable moments(2);
  for (std::int64_t i = 0; i < kMoments; ++i) {
    ASSERT_TRUE(moments.MakeRoom(budget));
    ASSERT_TRUE(moments.MakeRoom(budget)) << "the room is still there";
    moments.Add(static_cast<std::uint32_t>(i % 7), -i, Values{i, INT64_MIN});
  }
  ASSERT_EQ(moments.size(), kMoments);
  for (std::int64_t i = 0; i < kMoments; ++i) {
    const auto moment = static_cast<std::size_t>(i);
    EXPECT_EQ(moments.row(moment), i % 7);
    EXPECT_EQ(moments.time_ns(moment), -i);
    EXPECT_EQ(moments.value(moment, 0), i);
    EXPECT_EQ(moments.value(moment, 1), INT64_MIN);
  }
  EXPECT_EQ(budget.used_bytes(), moments.memory_bytes());
}

TEST(MomentTable, TakesItsShareOfTheLimit) {
  constexpr std::size_t kLimit = 1 << 20;
  MemoryBudget budget(kLimit);
  MomentTable moments(2);
  while (moments.MakeRoom(budget)) moments.Add(0, 1, Values{1, 1});
  EXPECT_LE(moments.memory_bytes(), kLimit / MomentTable::kShareOfLimit);
  EXPECT_GT(moments.memory_bytes(), kLimit / MomentTable::kShareOfLimit * 9 / 10);
  EXPECT_EQ(moments.size(), moments.memory_bytes() / 32 / 512 * 512);
  EXPECT_EQ(budget.used_bytes(), moments.memory_bytes());
}

TEST(MomentTable, LeavesTheBudgetToOthers) {
  MemoryBudget budget(1 << 20);
  budget.Take((1 << 20) - 1000);
  MomentTable moments(2);
  EXPECT_FALSE(moments.MakeRoom(budget));
  EXPECT_EQ(moments.memory_bytes(), 0u);
}

}  // namespace
}  // namespace strobe
