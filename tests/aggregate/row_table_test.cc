#include "strobe/aggregate/row_table.h"

#include <gtest/gtest.h>

#include <array>

namespace strobe {
namespace {

using internal::StackTrie;

TEST(RowTable, OneRowForEachStackAndLabels) {
  MemoryBudget budget(1 << 24);
  StackTrie trie;
  RowTable rows(2);
  constexpr std::uint32_t kNodes = 50;
  constexpr std::uint32_t kLabels = 60;
  for (Address i = 0; i < kNodes; ++i) trie.Child(StackTrie::kRoot, i, budget);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t node = 1; node <= kNodes; ++node) {
      for (std::uint32_t labels = 0; labels < kLabels; ++labels) {
        const std::uint32_t row = rows.FindOrAdd(trie, node, labels, budget);
        rows.Add(row, std::array<std::int64_t, 2>{1, node * 1000 + labels});
      }
    }
  }
  ASSERT_EQ(rows.size(), kNodes * kLabels);
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    EXPECT_EQ(rows.value(row, 0), 3);
    EXPECT_EQ(rows.value(row, 1), 3 * (rows.node(row) * 1000 + rows.labels(row)));
  }
}

TEST(RowTable, RefusesPastTheBudgetAndAdmitsWhatMustBe) {
  StackTrie trie;
  RowTable rows(1);
  MemoryBudget none(0);
  EXPECT_EQ(rows.FindOrAdd(trie, 0, 7, none), RowTable::kNone);
  EXPECT_EQ(rows.size(), 0u);
  const std::uint32_t row = rows.FindOrAdd(trie, 0, 7, none, Admission::kAlways);
  EXPECT_EQ(rows.FindOrAdd(trie, 0, 7, none), row);
  EXPECT_EQ(none.used_bytes(), rows.memory_bytes());
}

}  // namespace
}  // namespace strobe
