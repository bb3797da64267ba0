#include "../../../src/cli/profile/costs.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

TEST(ColumnMagnitudeTest, AddsSizesUpAndStaysInItsRange) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  MadeProfile made;
  made.Add({"f"}, {2});
  made.Add({"g"}, {-5});
  EXPECT_EQ(ColumnMagnitude(made.profile(), 0), 7);
  made.Add({"h"}, {std::numeric_limits<std::int64_t>::min()});
  made.Add({"i"}, {std::numeric_limits<std::int64_t>::min()});
  EXPECT_EQ(ColumnMagnitude(made.profile(), 0), kMost);
}

TEST(LargestCostsTest, TheSignDoesNotMatter) {
  const std::vector<FunctionCost> costs = {{1, 1}, {-5, -5}, {0, 0}, {3, 9}, {0, -20}};
  EXPECT_THAT(LargestCosts(costs, false), ElementsAre(1, 3, 0, 4));
  EXPECT_THAT(LargestCosts(costs, true), ElementsAre(4, 3, 1, 0));
}

TEST(SamplesBehindTest, SamplesOfEqualWeightAreCountedAsTheyAre) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.Add({"f"}, {30, 300}, Thread(1));
  made.Add({"g"}, {70, 700}, Thread(2));
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1).count(), 100);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 0).count(), 100);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1).taken(), 100);
}

TEST(SamplesBehindTest, AThreadWithSamplesOfMoreWeightMakesThemFewer) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.Add({"f"}, {1, 100}, Thread(1));
  made.Add({"g"}, {100, 100}, Thread(2));
  const double expected = 200.0 * 200.0 / (100.0 * 100.0 / 1 + 100.0 * 100.0 / 100);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1).count(), expected);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1).taken(), 101);
}

TEST(SamplesBehindTest, AThreadOfAnotherProcessIsAnother) {
  for (const char* key : {"process id", "process_id"}) {
    MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
    for (const std::int64_t process : {7, 8}) {
      made.Add({"f"}, {process == 7 ? 1 : 99, 100}, Thread(1).Joined(LabelSet({{key, process}})));
    }
    EXPECT_LT(SamplesBehind(made.profile(), 1).count(), 5) << key;
  }
}

TEST(SamplesBehindTest, WhatNoSampleDividesIsUnknown) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.Add({"f"}, {10, 100}, Thread(1));
  made.Add({"f"}, {0, 50}, Thread(2));  // by what another tool wrote
  const std::uint32_t lost = made.Add({"lost"}, {20, 250}, Thread(1));
  made.profile().frames[1] = {.address = static_cast<Address>(PseudoFrame::kLost),
                              .module = Frame::kPseudo};
  ASSERT_EQ(made.profile().stacks[made.profile().samples[lost].stack].frame, 1u);
  const EffectiveSamples samples = SamplesBehind(made.profile(), 1);
  EXPECT_DOUBLE_EQ(samples.taken(), 10) << "the lost ones were not";
  EXPECT_DOUBLE_EQ(samples.unknown(), 0.75);
}

TEST(SamplesBehindTest, RowsWithoutAnAmountAreOfOtherTypes) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}, {"page-faults", "count"}});
  made.Add({"f"}, {10, 100, 0}, Thread(1));
  made.Add({"g"}, {4000, 0, 4000}, Thread(1));
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1).taken(), 10);
}

TEST(SamplesBehindTest, AreNoneIfTheProfileDoesNotCountThoseOfTheColumn) {
  MadeProfile uncounted({{"cpu", "nanoseconds"}});
  uncounted.Add({"f"}, {5});
  EXPECT_EQ(SamplesBehind(uncounted.profile(), 0).taken(), 0);
  MadeProfile several({{"samples", "count"}, {"cpu", "nanoseconds"}, {"alloc_space", "bytes"}});
  several.Add({"f"}, {1, 2, 3});
  EXPECT_GT(SamplesBehind(several.profile(), 1).taken(), 0);
  EXPECT_EQ(SamplesBehind(several.profile(), 2).taken(), 0) << "the samples are those of CPU time";
  MadeProfile two({{"samples", "count"}, {"alloc_space", "bytes"}});
  two.Add({"f"}, {4, 3});
  EXPECT_DOUBLE_EQ(SamplesBehind(two.profile(), 1).taken(), 4) << "or of the only other type";
}

TEST(SamplesBehindTest, AColumnMayHaveACountOfItsOwn) {
  MadeProfile made({{"samples", "count"},
                    {"page-faults", "count"},
                    {"cpu_samples", "count"},
                    {"cpu", "nanoseconds"}});
  made.Add({"f"}, {4000, 4000, 10, 100});
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 1).taken(), 4000);
  EXPECT_DOUBLE_EQ(SamplesBehind(made.profile(), 3).taken(), 10);
}

TEST(ShareOfTest, AShareOfNothingIsZero) {
  EXPECT_EQ(ShareOf(1, 4), 0.25);
  EXPECT_EQ(ShareOf(0, 0), 0);
  EXPECT_EQ(ShareOf(5, 0), 0);
}

}  // namespace
}  // namespace strobe::internal
