#include "strobe/aggregate/bounded_table.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

namespace strobe {
namespace {

TEST(MemoryBudget, RefusesWhatWouldPassTheLimitLessTheReserve) {
  MemoryBudget budget(100);
  budget.Take(60);
  budget.set_reserve_bytes(20);
  EXPECT_FALSE(budget.Allows(21));
  EXPECT_TRUE(budget.Allows(20));
  budget.Take(70);
  EXPECT_EQ(budget.used_bytes(), 130u);
  budget.GiveBack(130);
  EXPECT_TRUE(budget.Allows(80));
}

TEST(AllocateFrom, TakesOnlyWhatWasAllocated) {
  MemoryBudget budget(100);
  EXPECT_THROW(static_cast<void>(AllocateFrom(budget, 60, Admission::kWithinBudget,
                                              [] { throw std::bad_alloc(); })),
               std::bad_alloc);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_TRUE(AllocateFrom(budget, 60, Admission::kWithinBudget, [] {}));
  EXPECT_FALSE(AllocateFrom(budget, 60, Admission::kWithinBudget, [] { FAIL(); }));
  EXPECT_TRUE(AllocateFrom(budget, 60, Admission::kAlways, [] {}));
  EXPECT_EQ(budget.used_bytes(), 120u);
}

TEST(IdTable, FindsEveryIdThroughGrowthAndCollisions) {
  MemoryBudget budget(1 << 20);
  IdTable table;
  std::vector<std::uint64_t> keys;
  // Half of the keys share their hash with another.
  const auto hash = [](std::uint64_t key) { return HashPair(key / 2, 1); };
  const auto find = [&](std::uint64_t key) {
    return table.Find(hash(key), [&](std::uint32_t id) { return keys[id] == key; });
  };
  for (std::uint64_t key = 0; key < 10000; ++key) {
    EXPECT_EQ(find(key), IdTable::kNone);
    ASSERT_TRUE(table.MakeRoom(budget, Admission::kWithinBudget));
    table.Insert(hash(key), static_cast<std::uint32_t>(keys.size()));
    keys.push_back(key);
  }
  for (std::uint64_t key = 0; key < 10000; ++key) ASSERT_EQ(find(key), key);
  EXPECT_EQ(budget.used_bytes(), table.memory_bytes());
}

TEST(IdTable, DoesNotGrowPastTheBudgetUnlessItMust) {
  MemoryBudget budget(64 * 8 + 128 * 8 - 1);  // not enough for 64 slots and 128 at the same time
  IdTable table;
  std::uint32_t inserted = 0;
  for (; table.MakeRoom(budget, Admission::kWithinBudget); ++inserted)
    table.Insert(HashPair(inserted, 0), inserted);
  EXPECT_EQ(inserted, 48u);
  EXPECT_LE(budget.used_bytes(), budget.limit_bytes());
  EXPECT_TRUE(table.MakeRoom(budget, Admission::kAlways));
  for (std::uint32_t id = 0; id < inserted; ++id) {
    EXPECT_EQ(table.Find(HashPair(id, 0), [&](std::uint32_t found) { return found == id; }), id);
  }
}

}  // namespace
}  // namespace strobe
