#include "../../src/aggregate/merged_stacks.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "flat_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::SizeIs;

// The generation 1 has a module "old" where the generation 2 has "new"; both have "main".
class MergedStacksTest : public ::testing::Test {
 protected:
  MergedStacksTest() {
    const Module main = testing::MakeModule(0x1000, "main");
    modules_.Add(1, ModuleMap({main, testing::MakeModule(0x5000, "old")}));
    modules_.Add(2, ModuleMap({main, testing::MakeModule(0x5000, "new")}));
  }

  std::uint32_t Add(Address key, const std::vector<Address>& root_first) {
    std::uint32_t node = trie_.Child(StackTrie::kRoot, key, budget_);
    for (const Address address : root_first) node = trie_.Child(node, address, budget_);
    return node;
  }

  ModuleHistory modules_;
  StackTrie trie_;
  MemoryBudget budget_{std::numeric_limits<std::size_t>::max() / 2};
};

TEST_F(MergedStacksTest, AnAddressIsAFrameOfTheModuleThatWasLoadedThen) {
  const std::uint32_t before = Add(StackTrie::StackKey(1, StackEnd::kComplete), {0x1010, 0x5010});
  const std::uint32_t after = Add(StackTrie::StackKey(2, StackEnd::kComplete), {0x1010, 0x5010});
  const MergedStacks stacks(trie_, modules_);
  EXPECT_THAT(stacks.nodes(), SizeIs(1 + 3));
  EXPECT_THAT(stacks.frames(), SizeIs(3));
  const StackNode& old_leaf = stacks.nodes()[stacks.NodeOf(before)];
  const StackNode& new_leaf = stacks.nodes()[stacks.NodeOf(after)];
  EXPECT_EQ(old_leaf.parent, new_leaf.parent);
  EXPECT_EQ(modules_.modules()[stacks.frames()[old_leaf.frame].module].path, "old");
  EXPECT_EQ(modules_.modules()[stacks.frames()[new_leaf.frame].module].path, "new");
}

TEST_F(MergedStacksTest, AStackThatEndedEarlyHasItsReasonAtItsRoot) {
  const std::uint32_t broken = Add(StackTrie::StackKey(1, StackEnd::kBroken), {0x1010});
  const std::uint32_t alone = Add(StackTrie::PseudoKey(PseudoFrame::kBroken), {});
  const MergedStacks stacks(trie_, modules_);
  const std::optional<std::uint32_t> root = stacks.FindRoot(PseudoFrame::kBroken);
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(stacks.NodeOf(alone), *root);
  EXPECT_EQ(stacks.nodes()[stacks.NodeOf(broken)].parent, *root);
  EXPECT_TRUE(stacks.frames()[stacks.nodes()[*root].frame].is_pseudo());
  EXPECT_FALSE(stacks.FindRoot(PseudoFrame::kResidual).has_value());
}

}  // namespace
}  // namespace strobe::internal
