#include "../../../src/cli/profile/costs.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using CostsByName = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

// The self and the total of each function.
CostsByName CostsOf(const LoadedProfile& loaded, std::size_t column = 0) {
  const absl::StatusOr<FunctionLines> lines = FunctionLines::Make(loaded, false);
  EXPECT_TRUE(lines.ok()) << lines.status();
  CostsByName all;
  const std::vector<FunctionCost> costs = FunctionCosts(loaded.profile, *lines, column);
  for (std::size_t i = 0; i < costs.size(); ++i)
    all[lines->functions()[i].name] = {costs[i].self, costs[i].total};
  return all;
}

LabelSet Thread(std::int64_t id) { return LabelSet({{std::string(kThreadIdLabel), id}}); }

TEST(FunctionCostsTest, ATotalIsOfTheFunctionAndOfWhatItCalled) {
  MadeProfile made;
  made.Add({"main", "f", "g"}, {5});
  made.Add({"main", "f"}, {3});
  made.Add({"main", "g"}, {1});
  EXPECT_THAT(CostsOf(made.Finish()),
              ElementsAre(Pair("f", Pair(3, 8)), Pair("g", Pair(6, 6)), Pair("main", Pair(0, 9))));
}

TEST(FunctionCostsTest, ARecursiveFunctionCountsOnce) {
  MadeProfile made;
  made.Add({"f", "g", "f", "g"}, {4});
  EXPECT_THAT(CostsOf(made.Finish()), ElementsAre(Pair("f", Pair(0, 4)), Pair("g", Pair(4, 4))));
}

TEST(FunctionCostsTest, OnlyTheColumnCounts) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.Add({"f"}, {1, 0});
  made.Add({"g"}, {1, 20});
  EXPECT_THAT(CostsOf(made.Finish(), 1),
              ElementsAre(Pair("f", Pair(0, 0)), Pair("g", Pair(20, 20))));
}

TEST(FunctionCostsTest, SelfIsThatOfTheInnermostInlinedFunction) {
  MadeProfile made;
  made.Add({"main"}, {7});
  made.symbols().functions.push_back({.name = "inlined", .system_name = "inlined"});
  made.symbols().inlined = {{.function = 1, .line = 3}};
  made.symbols().frames[0].inlined_count = 1;
  EXPECT_THAT(CostsOf(made.Finish()),
              ElementsAre(Pair("inlined", Pair(7, 7)), Pair("main", Pair(0, 7))));
}

TEST(FunctionCostsTest, ARowWithoutFramesIsOfNoFunction) {
  MadeProfile made;
  made.Add({}, {7});
  made.Add({"main"}, {1});
  EXPECT_THAT(CostsOf(made.Finish()), ElementsAre(Pair("main", Pair(1, 1))));
}

TEST(ColumnSumTest, AddsUpAndStaysInItsRange) {
  MadeProfile made;
  made.Add({"f"}, {2});
  made.Add({"g"}, {-5});
  EXPECT_EQ(ColumnSum(made.profile(), 0), -3);
  made.Add({"h"}, {std::numeric_limits<std::int64_t>::max()});
  made.Add({"i"}, {std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(ColumnSum(made.profile(), 0), std::numeric_limits<std::int64_t>::max());
}

TEST(SamplesBehindTest, SamplesOfEqualWeightAreCountedAsTheyAre) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.Add({"f"}, {30, 300}, Thread(1));
  made.Add({"g"}, {70, 700}, Thread(2));
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1), 100);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 0), 100);
}

TEST(SamplesBehindTest, AThreadWithSamplesOfMoreWeightMakesThemFewer) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.Add({"f"}, {1, 100}, Thread(1));
  made.Add({"g"}, {100, 100}, Thread(2));
  const double expected = 200.0 * 200.0 / (100.0 * 100.0 / 1 + 100.0 * 100.0 / 100);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1), expected);
}

TEST(SamplesBehindTest, AreNoneIfTheProfileDoesNotCountThoseOfTheColumn) {
  MadeProfile uncounted({{"cpu", "nanoseconds"}});
  uncounted.Add({"f"}, {5});
  EXPECT_EQ(SamplesBehind(uncounted.profile(), 0), 0);
  MadeProfile several({{"samples", "count"}, {"cpu", "nanoseconds"}, {"alloc_space", "bytes"}});
  several.Add({"f"}, {1, 2, 3});
  EXPECT_GT(SamplesBehind(several.profile(), 1), 0);
  EXPECT_EQ(SamplesBehind(several.profile(), 2), 0) << "the samples are those of CPU time";
  MadeProfile two({{"samples", "count"}, {"alloc_space", "bytes"}});
  two.Add({"f"}, {4, 3});
  EXPECT_DOUBLE_EQ(SamplesBehind(two.profile(), 1), 4) << "or of the only other type";
}

TEST(ShareOfTest, AShareOfNothingIsZero) {
  EXPECT_EQ(ShareOf(1, 4), 0.25);
  EXPECT_EQ(ShareOf(0, 0), 0);
  EXPECT_EQ(ShareOf(5, 0), 0);
}

TEST(ChangeOfTest, IsSignificantBeyondThreeOfItsErrors) {
  const ShareChange large = ChangeOf(0.5, 10'000, 0.4, 10'000);
  EXPECT_DOUBLE_EQ(large.change, 0.5 - 0.4);
  // About sqrt(0.25 / 10000 + 0.24 / 10000).
  EXPECT_NEAR(large.error, 0.007, 1e-4);
  EXPECT_TRUE(large.is_significant);
  EXPECT_FALSE(ChangeOf(0.41, 10'000, 0.4, 10'000).is_significant);
  EXPECT_TRUE(ChangeOf(0.3, 10'000, 0.4, 10'000).is_significant);
  EXPECT_FALSE(ChangeOf(0.5, 20, 0.4, 20).is_significant) << "of too few samples";
}

TEST(ChangeOfTest, HasNoErrorIfSamplesAreNotCounted) {
  const ShareChange change = ChangeOf(1, 0, 0, 1000);
  EXPECT_EQ(change.change, 1);
  EXPECT_TRUE(std::isnan(change.error));
  EXPECT_FALSE(change.is_significant);
}

}  // namespace
}  // namespace strobe::internal
