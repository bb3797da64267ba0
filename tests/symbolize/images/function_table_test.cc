#include "../../../src/symbolize/images/function_table.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

struct NamedRange {
  std::uint64_t address;
  std::uint64_t end;
  std::string name;
};

FunctionTable TableOf(const std::vector<NamedRange>& ranges) {
  std::vector<FunctionTable::Function> functions;
  std::vector<char> names;
  for (const auto& [address, end, name] : ranges) {
    functions.push_back({address, end, static_cast<std::uint32_t>(names.size())});
    names.insert(names.end(), name.begin(), name.end());
    names.push_back('\0');
  }
  return {std::move(functions), std::move(names)};
}

TEST(FunctionTableTest, FindsTheFunctionThatHoldsAnAddress) {
  const FunctionTable table = TableOf({{0x2000, 0x2010, "second"}, {0x1000, 0x1100, "first"}});
  EXPECT_EQ(table.Find(0xFFF), "");
  EXPECT_EQ(table.Find(0x1000), "first");
  EXPECT_EQ(table.Find(0x10FF), "first");
  EXPECT_EQ(table.Find(0x1100), "");
  EXPECT_EQ(table.Find(0x200F), "second");
  EXPECT_EQ(table.Find(~std::uint64_t{0}), "");
  EXPECT_FALSE(table.empty());
}

TEST(FunctionTableTest, SaysWhereFunctionsAre) {
  const FunctionTable table = TableOf({{0x2000, 0x2010, "second"}, {0x1000, 0x1100, "first"}});
  const FunctionTable::Function* const first = table.FindFunction(0x1080);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->address, 0x1000u);
  EXPECT_EQ(first->end, 0x1100u);
  EXPECT_EQ(table.FindFunction(0x1100), nullptr);
  ASSERT_EQ(table.functions().size(), 2u);
  EXPECT_EQ(table.NameOf(table.functions()[0]), "first");
  EXPECT_EQ(table.NameOf(table.functions()[1]), "second");
}

TEST(FunctionTableTest, AnEmptyOneFindsNothing) {
  EXPECT_EQ(FunctionTable().Find(0), "");
  EXPECT_TRUE(FunctionTable().empty());
  EXPECT_EQ(FunctionTable({}, {}).Find(5), "");
}

TEST(FunctionTableTest, AFunctionWithinAnotherCountsFirst) {
  const FunctionTable table = TableOf({{0x1000, 0x2000, "outer"}, {0x1100, 0x1200, "inner"}});
  EXPECT_EQ(table.Find(0x10FF), "outer");
  EXPECT_EQ(table.Find(0x1100), "inner");
  EXPECT_EQ(table.Find(0x1200), "outer");
}

TEST(FunctionTableTest, OfSeveralNamesTheBetterKnownCounts) {
  EXPECT_EQ(TableOf({{1, 9, "__malloc"}, {1, 9, "malloc"}, {1, 9, "_malloc"}}).Find(1), "malloc");
  EXPECT_EQ(TableOf({{1, 9, "longer"}, {1, 9, "short"}}).Find(1), "short");
  EXPECT_EQ(TableOf({{1, 9, "b"}, {1, 9, "a"}}).Find(1), "a");
  EXPECT_EQ(TableOf({{1, 5, "part"}, {1, 9, "__whole"}}).Find(1), "__whole")
      << "the longest range of one address";
}

TEST(FunctionTableTest, LongNamesAreCut) {
  const FunctionTable table =
      TableOf({{1, 9, std::string(FunctionTable::kMaxNameBytes + 10, 'x')}});
  EXPECT_EQ(table.Find(1), std::string(FunctionTable::kMaxNameBytes, 'x'));
}

TEST(FunctionTableTest, TheLastNameNeedsNoZero) {
  EXPECT_EQ(FunctionTable({{1, 9, 0}}, {'f'}).Find(1), "f");
}

TEST(FunctionTableTest, SaysWhetherItIsAPartAndWhatItNeeds) {
  FunctionTable table = TableOf({{1, 9, "f"}});
  EXPECT_FALSE(table.is_partial());
  table.set_is_partial(true);
  EXPECT_TRUE(table.is_partial());
  EXPECT_GE(table.memory_bytes(), sizeof(FunctionTable) + sizeof(FunctionTable::Function) + 2);
}

}  // namespace
}  // namespace strobe::internal
