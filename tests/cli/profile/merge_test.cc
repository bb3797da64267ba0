#include "../../../src/cli/profile/merge.h"

#include <string>
#include <utility>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

LoadedProfile Merge(std::vector<LoadedProfile> profiles) {
  absl::StatusOr<LoadedProfile> sum = MergeProfiles(profiles);
  EXPECT_TRUE(sum.ok()) << sum.status();
  return *std::move(sum);
}
std::vector<LoadedProfile> Both(LoadedProfile first, LoadedProfile second) {
  std::vector<LoadedProfile> both;
  both.push_back(std::move(first));
  both.push_back(std::move(second));
  return both;
}
LoadedProfile Made(MadeProfile::Names stack, std::int64_t value) {
  MadeProfile made;
  made.Add(stack, {value});
  return made.Finish();
}

LabelSet RequestLabel(const char* text) {
  const std::vector<Label> labels = {{"request", text}};
  return LabelSet(labels);
}

TEST(MergeProfilesTest, IterationsAreAddedUpIfAllHaveThem) {
  const auto with = [](double iterations) {
    LoadedProfile loaded = Made({"main"}, 1);
    loaded.SetIterations(iterations);
    return loaded;
  };
  EXPECT_EQ(Merge(Both(with(3), with(4.5))).Iterations(), 7.5);
  EXPECT_EQ(Merge(Both(with(3), with(3))).Iterations(), 6);
  EXPECT_EQ(Merge(Both(with(3), with(0))).Iterations(), 0);
  EXPECT_EQ(Merge(Both(with(0), with(3))).Iterations(), 0);
}

TEST(MergeProfilesTest, EqualStacksAreAddedUp) {
  const LoadedProfile sum = Merge(Both(Made({"main", "f"}, 3), Made({"main", "f"}, 4)));
  EXPECT_THAT(RowsOf(sum), ElementsAre("main;f 7"));
  EXPECT_EQ(sum.symbols.functions.size(), 2u) << "the same functions";
}

TEST(MergeProfilesTest, OtherStacksStandBesideThem) {
  EXPECT_THAT(RowsOf(Merge(Both(Made({"main", "f"}, 3), Made({"main", "g"}, 4)))),
              UnorderedElementsAre("main;f 3", "main;g 4"));
}

TEST(MergeProfilesTest, LabelsTellRowsApart) {
  MadeProfile first;
  first.Add({"f"}, {1}, RequestLabel("a"));
  MadeProfile second;
  second.Add({"f"}, {2}, RequestLabel("b"));
  EXPECT_THAT(RowsOf(Merge(Both(first.Finish(), second.Finish()))),
              UnorderedElementsAre("f 1", "f 2"));
}

TEST(MergeProfilesTest, TheOrderOfValueTypesMayDiffer) {
  MadeProfile first({{"samples", "count"}, {"cpu", "nanoseconds"}});
  first.Add({"f"}, {1, 10});
  MadeProfile second({{"cpu", "nanoseconds"}, {"samples", "count"}});
  second.Add({"f"}, {20, 2});
  EXPECT_THAT(RowsOf(Merge(Both(first.Finish(), second.Finish()))), ElementsAre("f 3 30"));
}

TEST(MergeProfilesTest, OtherValueTypesAreRefused) {
  MadeProfile other({{"wall", "nanoseconds"}});
  other.Add({"f"}, {1});
  MadeProfile more({{"samples", "count"}, {"wall", "nanoseconds"}});
  more.Add({"f"}, {1, 1});
  for (auto* const made : {&other, &more}) {
    const auto both = Both(Made({"f"}, 1), made->Finish());
    EXPECT_EQ(MergeProfiles(both).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(MergeProfilesTest, LastsAsLongAsAll) {
  MadeProfile first;
  first.profile().time_ns = 2000;
  first.profile().duration_ns = 10;
  first.profile().program = "a";
  first.profile().period = 5;
  first.profile().machine = LabelSet({{"cpus", 4}, {"os", "Own"}});
  MadeProfile second;
  second.profile().time_ns = 1000;
  second.profile().duration_ns = 20;
  second.profile().program = "b";
  second.profile().period = 6;
  second.profile().machine = LabelSet({{"cpus", 8}, {"os", "Own"}});
  std::vector<LoadedProfile> both = Both(first.Finish(), second.Finish());
  both[0].comments = {"x", "same"};
  both[1].comments = {"same", "y"};
  const LoadedProfile sum = Merge(std::move(both));
  EXPECT_EQ(sum.profile.time_ns, 1000);
  EXPECT_EQ(sum.profile.duration_ns, 30);
  EXPECT_EQ(sum.profile.program, "") << "they are of different programs";
  EXPECT_EQ(sum.profile.period, 0);
  EXPECT_EQ(sum.profile.machine.Text("os"), "Own");
  EXPECT_EQ(sum.profile.machine.labels().size(), 1U) << "they are of different machines";
  EXPECT_THAT(sum.comments, ElementsAre("x", "same", "y"));
}

TEST(MergeProfilesTest, TheSumOfOneIsItWithoutTheRest) {
  MadeProfile made;
  made.Frame("unused");
  made.Add({"main", "f"}, {3});
  std::vector<LoadedProfile> one;
  one.push_back(made.Finish());
  const LoadedProfile sum = Merge(std::move(one));
  EXPECT_THAT(RowsOf(sum), ElementsAre("main;f 3"));
  EXPECT_EQ(sum.profile.frames.size(), 2u);
  EXPECT_EQ(sum.symbols.functions.size(), 2u);
}

TEST(MergeProfilesTest, PartsOfRowsStay) {
  const auto made = [](std::int64_t time_ns) {
    MadeProfile profile;
    profile.AddMoment(profile.Add({"f"}, {2}), time_ns, {2});
    return profile.Finish();
  };
  const LoadedProfile sum = Merge(Both(made(100), made(50)));
  EXPECT_THAT(RowsOf(sum), ElementsAre("f 4"));
  ASSERT_EQ(sum.profile.moments.size(), 2u);
}

TEST(MergeProfilesTest, NothingIsTheSumOfNothing) { EXPECT_THAT(RowsOf(Merge({})), IsEmpty()); }

}  // namespace
}  // namespace strobe::internal
