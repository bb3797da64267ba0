#include "strobe/aggregate/life_table.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

constexpr std::size_t kBudgetBytes = std::size_t{1} << 20;

TEST(LifeTable, ALifeIsTheSumOfItsParts) {
  MemoryBudget budget(kBudgetBytes);
  LifeTable lives;
  EXPECT_EQ(lives.Find(300), nullptr);
  EXPECT_TRUE(lives.Add(300, {.begin_ns = -5, .cpu_ns = 7, .samples = 1}, budget));
  EXPECT_TRUE(lives.Add(0, {.begin_ns = 1, .end_ns = 2}, budget));
  EXPECT_TRUE(lives.Add(300, {.begin_ns = -5, .cpu_ns = -1, .samples = 2}, budget));
  EXPECT_TRUE(lives.Add(300, {.begin_ns = -5, .end_ns = 90, .cpu_ns = 3}, budget));
  ASSERT_NE(lives.Find(300), nullptr);
  EXPECT_EQ(lives.Find(300)->begin_ns, -5);
  EXPECT_EQ(lives.Find(300)->end_ns, 90);
  EXPECT_EQ(lives.Find(300)->cpu_ns, 10);
  EXPECT_EQ(lives.Find(300)->samples, 3u);
  ASSERT_NE(lives.Find(0), nullptr);
  EXPECT_EQ(lives.Find(0)->end_ns, 2);
  EXPECT_EQ(lives.Find(0)->cpu_ns, -1) << "no part has known it";
  EXPECT_EQ(lives.Find(0)->samples, 0u);
  for (const std::uint32_t key : {1u, 150u, 299u, 301u, 1000u}) EXPECT_EQ(lives.Find(key), nullptr);
  EXPECT_EQ(budget.used_bytes(), lives.memory_bytes());
}

TEST(LifeTable, TakesItsShareOfTheLimitAndKeepsWhatItHas) {
  MemoryBudget budget(kBudgetBytes);
  LifeTable lives;
  std::uint32_t key = 0;
  while (lives.Add(key, {.begin_ns = key}, budget)) ++key;
  EXPECT_LE(lives.memory_bytes(), kBudgetBytes / LifeTable::kShareOfLimit);
  EXPECT_GT(lives.memory_bytes(), kBudgetBytes / LifeTable::kShareOfLimit * 8 / 10);
  EXPECT_EQ(budget.used_bytes(), lives.memory_bytes());
  EXPECT_EQ(lives.Find(key), nullptr);
  EXPECT_TRUE(lives.Add(key - 1, {.begin_ns = 1, .cpu_ns = 4}, budget));
  EXPECT_EQ(lives.Find(key - 1)->cpu_ns, 4);
  EXPECT_EQ(lives.Find(0)->begin_ns, 0);
}

TEST(LifeTable, LeavesTheBudgetToOthers) {
  MemoryBudget budget(kBudgetBytes);
  budget.Take(kBudgetBytes - 1000);
  LifeTable lives;
  EXPECT_FALSE(lives.Add(0, {}, budget));
  EXPECT_EQ(lives.memory_bytes(), 0u);
}

}  // namespace
}  // namespace strobe
