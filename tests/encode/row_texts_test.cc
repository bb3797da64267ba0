#include "../../src/encode/row_texts.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RowTextsTest, AThreadWithoutANameHasItsNumber) {
  EXPECT_EQ(ThreadText(7, "main"), "main");
  EXPECT_EQ(ThreadText(7, ""), "thread 7");
  EXPECT_EQ(ThreadText(-1, ""), "thread 18446744073709551615") << "identifiers have no sign";
}

TEST(RowTextsTest, LabelsOfTheThreadAreLeftOut) {
  const LabelSet set = LabelSet({{"request", std::string("check=out")},
                                 {"batch size", std::numeric_limits<std::int64_t>::min()},
                                 {"note", std::string()}})
                           .Joined(ThreadLabels(7, "main"));
  EXPECT_THAT(LabelTexts(set),
              ElementsAre("batch size=-9223372036854775808", "note=", "request=check=out"));
  EXPECT_THAT(LabelTexts(ThreadLabels(7, "main")), IsEmpty());
  EXPECT_THAT(LabelTexts(LabelSet()), IsEmpty());
}

TEST(RowTextsTest, ThreadLabelsAreToldByTheirKeys) {
  EXPECT_TRUE(IsThreadLabel({"thread id", std::int64_t{1}}));
  EXPECT_TRUE(IsThreadLabel({"thread name", std::string("main")}));
  EXPECT_FALSE(IsThreadLabel({"thread", std::string("main")}));
}

TEST(RowTextsTest, AColumnIsFoundByItsType) {
  const Profile profile = testing::SmallProfile().profile;
  EXPECT_EQ(*FindColumn(profile, "wall", 0), 2U);
  EXPECT_EQ(*FindColumn(profile, "samples", 2), 0U);
  EXPECT_EQ(*FindColumn(profile, "", 2), 2U);
  const absl::Status missing = FindColumn(profile, "alloc", 0).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("alloc"));
}

TEST(RowTextsTest, ShortNamesAreValidUtf8) {
  testing::SampleProfile sample = testing::SmallProfile();
  sample.symbols.functions[0].name = "caf\xE9<int>(char)";
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  const std::vector<std::string> names = ShortNames(*view);
  ASSERT_THAT(names, SizeIs(view->function_count()));
  EXPECT_EQ(names[0], "caf?");
  EXPECT_EQ(names[1], "sample::Busy");
  EXPECT_EQ(names[5], "[truncated]");
}

TEST(PartsByThreadTest, LivesOfAThreadAreOneThread) {
  Profile profile;
  profile.value_types = {{"cpu", "nanoseconds"}};
  profile.threads = {{.id = 7, .name = "main"},
                     {.id = 8, .name = "idle"},
                     {.id = 7, .name = "main"},
                     {.id = 7, .name = "renamed"}};
  profile.label_sets = {ThreadLabels(7, "main"), ThreadLabels(7, "renamed")};
  profile.samples = {{.stack = 0, .labels = 0}, {.stack = 0, .labels = 1}};
  profile.values = {10, 20};
  const SampleParts parts(profile);
  const std::vector<ThreadParts> threads = PartsByThread(profile, parts);
  ASSERT_THAT(threads, SizeIs(3));
  EXPECT_EQ(threads[0].name, "main");
  EXPECT_THAT(threads[0].lives, ElementsAre(&profile.threads[0], &profile.threads[2]));
  ASSERT_THAT(threads[0].parts, SizeIs(1));
  EXPECT_EQ(threads[0].parts[0].values[0], 10);
  EXPECT_THAT(threads[1].parts, IsEmpty()) << "an idle thread is there, too";
  EXPECT_EQ(threads[2].name, "renamed");
  ASSERT_THAT(threads[2].parts, SizeIs(1));
  EXPECT_EQ(threads[2].parts[0].values[0], 20);
}

TEST(PartsByThreadTest, ThreadsThatOnlyLabelsNameComeLast) {
  Profile profile;
  profile.value_types = {{"cpu", "nanoseconds"}};
  profile.threads = {{.id = 8, .name = "worker"}};
  profile.label_sets = {ThreadLabels(7, ""), ThreadLabels(8, "worker")};
  profile.samples = {{.stack = 0, .labels = 0}, {.stack = 0, .labels = 1}};
  profile.values = {1, 2};
  const SampleParts parts(profile);
  const std::vector<ThreadParts> threads = PartsByThread(profile, parts);
  ASSERT_THAT(threads, SizeIs(2));
  EXPECT_EQ(threads[0].id, 8);
  EXPECT_EQ(threads[1].id, 7);
  EXPECT_EQ(threads[1].name, "");
  EXPECT_THAT(threads[1].lives, IsEmpty());
  EXPECT_EQ(threads[1].parts[0].values[0], 1);
}

}  // namespace
}  // namespace strobe::internal
