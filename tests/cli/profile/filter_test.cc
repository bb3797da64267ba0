#include "../../../src/cli/profile/filter.h"

#include <cstdint>
#include <string>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Status ApplyFilter(const Filter& filter, LoadedProfile& loaded) {
  const absl::StatusOr<FunctionLines> lines = FunctionLines::Make(loaded, false);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return filter.Apply(loaded, *lines);
}

std::vector<std::string> Filtered(const Filter& filter, LoadedProfile loaded) {
  EXPECT_TRUE(ApplyFilter(filter, loaded).ok());
  return RowsOf(loaded);
}

LabelSet LabelsOfThread(std::int64_t id, const std::string& name) {
  return LabelSet({{std::string(kThreadIdLabel), id}, {std::string(kThreadNameLabel), name}});
}

LoadedProfile CallsOfFAndG() {
  MadeProfile made;
  made.Add({"main", "f", "leaf"}, {1});
  made.Add({"main", "g", "leaf"}, {2});
  made.Add({"main", "f", "g"}, {4});
  made.Add({"main"}, {8});
  return made.Finish();
}

TEST(FilterTest, AnEmptyOneKeepsAll) {
  EXPECT_THAT(Filtered({}, CallsOfFAndG()),
              ElementsAre("main;f;leaf 1", "main;g;leaf 2", "main;f;g 4", "main 8"));
}

TEST(FilterTest, KeepsAndRemovesStacksByAnyOfTheirFunctions) {
  EXPECT_THAT(Filtered({.focus = "^f$"}, CallsOfFAndG()),
              ElementsAre("main;f;leaf 1", "main;f;g 4"));
  EXPECT_THAT(Filtered({.ignore = "^g$"}, CallsOfFAndG()), ElementsAre("main;f;leaf 1", "main 8"));
  EXPECT_THAT(Filtered({.focus = "^f$", .ignore = "leaf"}, CallsOfFAndG()),
              ElementsAre("main;f;g 4"));
  EXPECT_THAT(Filtered({.focus = "nothing"}, CallsOfFAndG()), IsEmpty());
}

TEST(FilterTest, KeepsThreadsByNameOrById) {
  const auto make = [] {
    MadeProfile made;
    made.Add({"f"}, {1}, LabelsOfThread(42, "main"));
    made.Add({"f"}, {2}, LabelsOfThread(43, "worker 42"));
    made.Add({"f"}, {4}, LabelsOfThread(44, ""));
    return made.Finish();
  };
  EXPECT_THAT(Filtered({.thread = "^work"}, make()), ElementsAre("f 2"));
  EXPECT_THAT(Filtered({.thread = "44"}, make()), ElementsAre("f 4"));
  EXPECT_THAT(Filtered({.thread = "42"}, make()), ElementsAre("f 1", "f 2"));
}

TEST(FilterTest, KeepsRowsThatHaveAllLabels) {
  const auto make = [] {
    MadeProfile made;
    made.Add({"f"}, {1}, LabelSet({{"endpoint", "/pay"}, {"shard id", std::int64_t{7}}}));
    made.Add({"f"}, {2}, LabelSet({{"endpoint", "/pay"}, {"shard id", std::int64_t{8}}}));
    made.Add({"f"}, {4}, LabelSet({{"endpoint", "/cart"}, {"shard id", std::int64_t{7}}}));
    return made.Finish();
  };
  EXPECT_THAT(Filtered({.labels = {{"endpoint", "/pay"}}}, make()), ElementsAre("f 1", "f 2"));
  EXPECT_THAT(Filtered({.labels = {{"endpoint", "/pay"}, {"shard id", "7"}}}, make()),
              ElementsAre("f 1"));
  EXPECT_THAT(Filtered({.labels = {{"shard_id", "7"}}}, make()), ElementsAre("f 1", "f 4"))
      << "as pprof files write the key";
  EXPECT_THAT(Filtered({.labels = {{"endpoint", "/pa"}}}, make()), IsEmpty()) << "no pattern";
  for (const char* const range : {"7..7", "..7", "-5..7"})
    EXPECT_THAT(Filtered({.labels = {{"shard id", range}}}, make()), ElementsAre("f 1", "f 4"))
        << range;
  for (const char* const range : {"7..", "7..8", ".."})
    EXPECT_THAT(Filtered({.labels = {{"shard id", range}}}, make()),
                ElementsAre("f 1", "f 2", "f 4"))
        << range;
  for (const char* const range : {"9..", "..6", "8..6", "7...", "7..8x"})
    EXPECT_THAT(Filtered({.labels = {{"shard id", range}}}, make()), IsEmpty()) << range;
  EXPECT_THAT(Filtered({.labels = {{"endpoint", ".."}}}, make()), IsEmpty()) << "a text";
  MadeProfile text;
  text.Add({"f"}, {1}, LabelSet(std::vector<Label>{{"thread_id", "42"}}));
  EXPECT_THAT(Filtered({.labels = {{"thread_id", "40..45"}}}, text.Finish()), ElementsAre("f 1"));
}

LoadedProfile WithMoments() {
  MadeProfile made;
  const std::uint32_t f = made.Add({"f"}, {10});
  const std::uint32_t g = made.Add({"g"}, {20});
  constexpr std::int64_t kFirst = 1'700'000'000'000'000'000;
  made.AddMoment(f, kFirst, {1});
  made.AddMoment(g, kFirst + 1'000'000'000, {2});
  made.AddMoment(f, kFirst + 1'500'000'000, {4});
  made.AddMoment(f, kFirst + 2'000'000'000, {5});
  return made.Finish();
}

TEST(FilterTest, TimesCountFromTheFirstMoment) {
  EXPECT_THAT(Filtered({.from_s = 1, .to_s = 2}, WithMoments()), ElementsAre("f 4", "g 2"))
      << "the end is not part of it";
  EXPECT_THAT(Filtered({.from_s = 1.5}, WithMoments()), ElementsAre("f 9"));
  EXPECT_THAT(Filtered({.to_s = 1}, WithMoments()), ElementsAre("f 1"));
  EXPECT_THAT(Filtered({.from_s = 1e30, .to_s = 1e31}, WithMoments()), IsEmpty());
}

TEST(FilterTest, RowsThatStayKeepTheirMoments) {
  LoadedProfile loaded = WithMoments();
  ASSERT_TRUE(ApplyFilter({.focus = "g"}, loaded).ok());
  ASSERT_EQ(loaded.profile.moments.size(), 1u);
  EXPECT_EQ(loaded.profile.moments[0].sample, 0u);
  EXPECT_EQ(loaded.profile.MomentValues(0)[0], 2);
}

TEST(FilterTest, SaysWhatItCannotDo) {
  LoadedProfile without_times = CallsOfFAndG();
  EXPECT_EQ(ApplyFilter({.from_s = 1}, without_times).code(),
            absl::StatusCode::kFailedPrecondition);
  for (const Filter& broken :
       {Filter{.focus = "("}, Filter{.ignore = "("}, Filter{.thread = "("}}) {
    LoadedProfile loaded = CallsOfFAndG();
    EXPECT_EQ(ApplyFilter(broken, loaded).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace strobe::internal
