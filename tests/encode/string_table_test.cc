#include "../../src/encode/string_table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

TEST(StringTableTest, TheEmptyStringIsNumberZero) {
  StringTable table;
  EXPECT_THAT(table.strings(), ElementsAre(""));
  EXPECT_EQ(table.Index(""), 0U);
  EXPECT_EQ(table.IndexOwned(""), 0U);
  EXPECT_THAT(table.strings(), ElementsAre(""));
}

TEST(StringTableTest, EachStringHasOneNumberHoweverItIsGiven) {
  StringTable table;
  EXPECT_EQ(table.Index("main"), 1U);
  EXPECT_EQ(table.IndexOwned("leaf"), 2U);
  EXPECT_EQ(table.IndexOwned("main"), 1U);
  EXPECT_EQ(table.Index("leaf"), 2U);
  EXPECT_EQ(table.Index("w\xC3\xB6rk"), 3U);
  EXPECT_EQ(table.IndexOwned("w\xC3\xB6rk"), 3U);
  EXPECT_THAT(table.strings(), ElementsAre("", "main", "leaf", "w\xC3\xB6rk"));
}

TEST(StringTableTest, TextsThatAreNotUtf8AreMendedAndThenTheSame) {
  StringTable table;
  EXPECT_EQ(table.Index("caf\xE9"), 1U);
  EXPECT_EQ(table.IndexOwned("caf\xFF"), 1U);
  EXPECT_EQ(table.Index("caf?"), 1U);
  EXPECT_THAT(table.strings(), ElementsAre("", "caf?"));
}

TEST(StringTableTest, AZeroByteIsAPartOfAText) {
  StringTable table;
  EXPECT_EQ(table.Index(std::string_view("a\0b", 3)), 1U);
  EXPECT_EQ(table.Index("a"), 2U);
  EXPECT_EQ(table.strings()[1].size(), 3U);
}

TEST(StringTableTest, KeptTextsStayWhileOthersAreAdded) {
  StringTable table;
  for (std::uint32_t i = 1; i <= 1000; ++i) EXPECT_EQ(table.IndexOwned(std::to_string(i)), i);
  for (std::uint32_t i = 1; i <= 1000; ++i) EXPECT_EQ(table.strings()[i], std::to_string(i));
}

}  // namespace
}  // namespace strobe::internal
