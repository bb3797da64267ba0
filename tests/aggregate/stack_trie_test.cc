#include "strobe/aggregate/stack_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "strobe/provider/sample_provider.h"

namespace strobe {
namespace {

using internal::StackTrie;

TEST(StackTrie, EqualPathsAreOneNode) {
  MemoryBudget budget(1 << 20);
  StackTrie trie;
  const std::uint32_t a = trie.Child(StackTrie::kRoot, 10, budget);
  const std::uint32_t b = trie.Child(a, 20, budget);
  const std::uint32_t c = trie.Child(a, 30, budget);
  EXPECT_EQ(trie.Child(StackTrie::kRoot, 10, budget), a);
  EXPECT_EQ(trie.Child(a, 20, budget), b);
  EXPECT_EQ(trie.Child(a, 30, budget), c);
  EXPECT_NE(b, c);
  EXPECT_NE(trie.Child(b, 30, budget), c) << "the same address under another caller";
  EXPECT_EQ(trie[c].parent, a);
  EXPECT_EQ(trie[c].address, 30u);
}

TEST(StackTrie, AgreesWithAMapOnRandomPaths) {
  MemoryBudget budget(std::size_t{1} << 30);
  StackTrie trie;
  std::map<std::pair<std::uint32_t, Address>, std::uint32_t> model;
  RandomSource random(5);
  for (int path = 0; path < 5000; ++path) {
    std::uint32_t node = StackTrie::kRoot;
    for (int depth = 0; depth < 20; ++depth) {
      const auto address = static_cast<Address>(random.Uniform() * (depth < 15 ? 2 : 6));
      const std::uint32_t child = trie.Child(node, address, budget);
      const auto [at, is_new] = model.try_emplace({node, address}, child);
      ASSERT_EQ(at->second, child);
      ASSERT_GT(child, node) << "parents come first";
      if (is_new) {
        ASSERT_EQ(child, model.size());
      }
      node = child;
    }
  }
  EXPECT_EQ(trie.size(), model.size() + 1);
}

TEST(StackTrie, StaysWithinTheBudget) {
  StackTrie trie;
  MemoryBudget budget(300000);
  budget.Take(trie.memory_bytes());
  Address address = 0;
  while (trie.Child(StackTrie::kRoot, address, budget) != StackTrie::kNone) ++address;
  EXPECT_GT(address, 1000u);
  EXPECT_LE(budget.used_bytes(), 300000u);
  EXPECT_EQ(budget.used_bytes(), trie.memory_bytes());
  EXPECT_NE(trie.Child(StackTrie::kRoot, 0, budget), StackTrie::kNone)
      << "what is there is still found";
  EXPECT_NE(trie.Child(StackTrie::kRoot, address, budget, Admission::kAlways), StackTrie::kNone);
}

TEST(StackTrie, KeysTellTheirParts) {
  const Address key = StackTrie::StackKey(0xFFFFFFFF, StackEnd::kNoUnwindInfo);
  EXPECT_FALSE(StackTrie::IsPseudoKey(key));
  EXPECT_EQ(StackTrie::GenerationOfKey(key), 0xFFFFFFFF);
  EXPECT_EQ(StackTrie::EndOfKey(key), StackEnd::kNoUnwindInfo);
  EXPECT_TRUE(StackTrie::IsPseudoKey(StackTrie::PseudoKey(PseudoFrame::kTruncated)));
  EXPECT_EQ(StackTrie::PseudoOfKey(StackTrie::PseudoKey(PseudoFrame::kOverflow)),
            PseudoFrame::kOverflow);
}

}  // namespace
}  // namespace strobe
