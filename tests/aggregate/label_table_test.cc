#include "strobe/aggregate/label_table.h"

#include <gtest/gtest.h>

#include <string>

namespace strobe {
namespace {

LabelSet Request(std::int64_t number) { return LabelSet({{"request", number}}); }

TEST(LabelTable, EqualSetsHaveOneNumber) {
  LabelTable table;
  EXPECT_EQ(table.Intern(LabelSet()), kNoContext);
  const std::uint64_t seven = table.Intern(Request(7));
  const std::uint64_t eight = table.Intern(Request(8));
  EXPECT_NE(seven, eight);
  EXPECT_EQ(table.Intern(Request(7)), seven);
  EXPECT_EQ(table[seven], Request(7));
  EXPECT_EQ(table[eight], Request(8));
  EXPECT_TRUE(table[kNoContext].empty());
}

TEST(LabelTable, SetsBeyondTheLimitAndUnknownNumbersHaveTheOverflowSet) {
  LabelTable table(std::size_t{16} << 10);
  std::int64_t i = 0;
  while (table.Intern(Request(i)) != kOverflowContext && i < 10'000) ++i;
  EXPECT_GT(i, 10);
  EXPECT_LT(i, 1000);
  EXPECT_NE(table.Intern(Request(0)), kOverflowContext) << "what has a number keeps it";
  EXPECT_EQ(table[kOverflowContext].Text("labels"), "[overflow]");
  EXPECT_EQ(table[~std::uint64_t{0}], table[kOverflowContext]) << "a forged number";
}

}  // namespace
}  // namespace strobe
