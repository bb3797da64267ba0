#include "strobe/aggregate/profile_tables.h"

#include <array>
#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

class ProfileTablesTest : public ::testing::Test {
 protected:
  ProfileTablesTest() { profile_.stacks.emplace_back(); }

  Profile profile_;
  ProfileTables tables_{kMaxBytes};
};

TEST_F(ProfileTablesTest, FindsTheNodesThatItHasMade) {
  EXPECT_EQ(tables_.FindNode(profile_, 0, 7), ProfileTables::kNone);
  const std::uint32_t first = tables_.Node(profile_, 0, 7);
  const std::uint32_t child = tables_.Node(profile_, first, 8);
  const std::uint32_t other = tables_.Node(profile_, 0, 8);
  EXPECT_EQ(tables_.FindNode(profile_, 0, 7), first);
  EXPECT_EQ(tables_.FindNode(profile_, first, 8), child);
  EXPECT_EQ(tables_.FindNode(profile_, 0, 8), other);
  EXPECT_EQ(tables_.FindNode(profile_, child, 8), ProfileTables::kNone);
  EXPECT_EQ(tables_.Node(profile_, 0, 8), other);
  EXPECT_THAT(profile_.stacks, SizeIs(4));
  EXPECT_EQ(profile_.stacks[child].parent, first);
  EXPECT_EQ(profile_.stacks[child].frame, 8u);
}

TEST_F(ProfileTablesTest, EqualSetsOfLabelsHaveOneNumber) {
  const LabelSet set({{"a", std::int64_t{1}}});
  EXPECT_EQ(tables_.Labels(profile_, {}), 0u);
  EXPECT_EQ(tables_.Labels(profile_, set), 1u);
  EXPECT_EQ(tables_.Labels(profile_, {}), 0u);
  EXPECT_EQ(tables_.Labels(profile_, set), 1u);
  EXPECT_THAT(profile_.label_sets, ElementsAre(LabelSet(), set));
}

TEST_F(ProfileTablesTest, AddsTheValuesOfEqualRowsUp) {
  const std::array<std::int64_t, 2> values{3, kMax};
  EXPECT_EQ(tables_.FindRow(profile_, 1, 2), ProfileTables::kNone);
  const std::uint32_t row = tables_.AddRow(profile_, 1, 2, values);
  const std::uint32_t other = tables_.AddRow(profile_, 2, 1, values);
  EXPECT_EQ(tables_.AddRow(profile_, 1, 2, values), row);
  EXPECT_EQ(tables_.FindRow(profile_, 2, 1), other);
  EXPECT_THAT(profile_.values, ElementsAre(6, kMax, 3, kMax)) << "a sum stays in its range";
  tables_.ForgetRows();
  EXPECT_EQ(tables_.FindRow(profile_, 1, 2), ProfileTables::kNone);
}

TEST_F(ProfileTablesTest, TakesWhatIsNewFromTheBudget) {
  const std::array<std::int64_t, 1> values{1};
  const auto add = [&] {
    const std::uint32_t node = tables_.Node(profile_, 0, 7);
    tables_.AddRow(profile_, node, tables_.Labels(profile_, {}), values);
    return tables_.budget().used_bytes();
  };
  const std::size_t used_bytes = add();
  EXPECT_GT(used_bytes, 0u);
  EXPECT_EQ(add(), used_bytes);
}

}  // namespace
}  // namespace strobe
