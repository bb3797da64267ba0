#include "../../../src/cli/profile/profile_builder.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Numbers = std::vector<std::uint32_t>;
using BuilderValues = std::vector<std::int64_t>;

// The frames of a node, leaf first.
Numbers FramesOf(const Profile& profile, std::uint32_t node) {
  Numbers frames;
  for (; node != 0; node = profile.stacks[node].parent)
    frames.push_back(profile.stacks[node].frame);
  return frames;
}

TEST(ProfileBuilderTest, EqualStacksAreOneNodeAndShareTheirRoots) {
  ProfileBuilder builder;
  const std::uint32_t first = builder.Stack(Numbers{3, 2, 1});
  const std::uint32_t other = builder.Stack(Numbers{4, 2, 1});
  const std::uint32_t shorter = builder.Stack(Numbers{2, 1});
  const std::uint32_t alone = builder.Stack(Numbers{3});
  EXPECT_EQ(builder.Stack(Numbers{}), 0u) << "the root";
  EXPECT_EQ(builder.Stack(Numbers{3, 2, 1}), first);
  EXPECT_EQ(builder.Stack(Numbers{3}), alone);
  const Profile& profile = builder.profile();
  EXPECT_THAT(FramesOf(profile, first), ElementsAre(3, 2, 1));
  EXPECT_THAT(FramesOf(profile, other), ElementsAre(4, 2, 1));
  EXPECT_THAT(FramesOf(profile, shorter), ElementsAre(2, 1));
  EXPECT_THAT(FramesOf(profile, alone), ElementsAre(3));
  EXPECT_EQ(profile.stacks[first].parent, shorter);
  EXPECT_THAT(profile.stacks, SizeIs(1 + 5));
}

TEST(ProfileBuilderTest, ManyStacksInAnyOrderHaveNoNodeTwice) {
  ProfileBuilder builder;
  std::vector<std::uint32_t> nodes;
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const std::uint32_t number = i * 389 % 1000;
      const std::uint32_t node =
          builder.Stack(Numbers{number % 10, number / 10 % 10, number / 100});
      if (round == 0) nodes.push_back(node);
      EXPECT_EQ(node, nodes[i]);
    }
  }
  EXPECT_THAT(builder.profile().stacks, SizeIs(1 + 10 + 100 + 1000));
  for (std::size_t i = 1; i < builder.profile().stacks.size(); ++i)
    EXPECT_LT(builder.profile().stacks[i].parent, i) << "a parent stands before its children";
}

TEST(ProfileBuilderTest, EqualLabelsAreOneSet) {
  ProfileBuilder builder;
  const Label a{"a", std::int64_t{1}};
  const Label b{"b", std::string("text")};
  EXPECT_EQ(builder.Labels({}), 0u);
  EXPECT_EQ(builder.Labels(LabelSet({a, b})), 1u);
  EXPECT_EQ(builder.Labels(LabelSet({b, a})), 1u);
  EXPECT_EQ(builder.Labels(LabelSet({a})), 2u);
  EXPECT_EQ(builder.Labels({}), 0u);
  EXPECT_THAT(builder.profile().label_sets, SizeIs(3));
}

TEST(ProfileBuilderTest, ValuesOfEqualRowsAddUpWithinTheirRange) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ProfileBuilder builder;
  const std::uint32_t stack = builder.Stack(Numbers{0});
  const std::uint32_t none = builder.Labels({});
  const std::uint32_t some = builder.Labels(LabelSet({{"a", std::int64_t{1}}}));
  EXPECT_EQ(builder.AddRow(stack, none, BuilderValues{1, kMost}), 0u);
  EXPECT_EQ(builder.AddRow(stack, some, BuilderValues{5, 6}), 1u);
  EXPECT_EQ(builder.AddRow(stack, none, BuilderValues{2, 1}), 0u);
  EXPECT_THAT(builder.profile().values, ElementsAre(3, kMost, 5, 6));
  builder.ForgetRows();
  builder.profile().samples.clear();
  builder.profile().values.clear();
  EXPECT_EQ(builder.AddRow(stack, some, BuilderValues{7, 8}), 0u);
  EXPECT_THAT(builder.profile().values, ElementsAre(7, 8));
}

TEST(ProfileBuilderTest, MomentsAreInTheOrderOfTheirTimesAtTheEnd) {
  ProfileBuilder builder;
  builder.profile().value_types = {{"samples", "count"}};
  const std::uint32_t none = builder.Labels({});
  const std::uint32_t row = builder.AddRow(builder.Stack(Numbers{0}), none, BuilderValues{9});
  builder.AddMoment(row, 30, BuilderValues{1});
  builder.AddMoment(row, 10, BuilderValues{2});
  builder.AddMoment(row, 30, BuilderValues{3});
  builder.AddMoment(row, 20, BuilderValues{4});
  const LoadedProfile loaded = builder.Finish();
  std::vector<std::int64_t> times;
  for (const ProfileMoment& moment : loaded.profile.moments) times.push_back(moment.time_ns);
  EXPECT_THAT(times, ElementsAre(10, 20, 30, 30));
  EXPECT_THAT(loaded.profile.moment_values, ElementsAre(2, 4, 1, 3)) << "equal times stay";
}

TEST(ProfileBuilderTest, ThreadsAreThoseThatLabelsName) {
  ProfileBuilder builder;
  builder.Labels({});
  builder.Labels(ThreadLabels(7, "main"));
  builder.Labels(ThreadLabels(7, "main").Joined(LabelSet({{"a", std::int64_t{1}}})));
  builder.Labels(ThreadLabels(8, ""));
  const LoadedProfile loaded = builder.Finish();
  ASSERT_THAT(loaded.profile.threads, SizeIs(2));
  EXPECT_EQ(loaded.profile.threads[0].id, 7u);
  EXPECT_EQ(loaded.profile.threads[0].name, "main");
  EXPECT_EQ(loaded.profile.threads[1].id, 8u);
  EXPECT_EQ(loaded.profile.threads[1].name, "");
}

TEST(ProfileBuilderTest, SaysWhenTheProfileIsTooLarge) {
  ProfileBuilder builder(std::size_t{1} << 20);
  EXPECT_TRUE(builder.status().ok());
  builder.Take(std::size_t{1} << 19);
  EXPECT_TRUE(builder.status().ok());
  builder.Take(std::size_t{1} << 20);
  EXPECT_EQ(builder.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(builder.status().message()), HasSubstr("1 MiB"));
}

TEST(ProfileBuilderTest, StacksLabelsRowsAndMomentsCostMemory) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 10;
  constexpr std::uint32_t kEnough = 100'000;
  const auto runs_out = [](const auto& add) {
    ProfileBuilder builder(kMaxBytes);
    for (std::uint32_t i = 0; i < kEnough && builder.status().ok(); ++i) add(builder, i);
    return !builder.status().ok();
  };
  EXPECT_TRUE(
      runs_out([](ProfileBuilder& builder, std::uint32_t i) { builder.Stack(Numbers{i}); }));
  EXPECT_TRUE(runs_out([](ProfileBuilder& builder, std::uint32_t i) {
    builder.Labels(LabelSet({{"a", std::int64_t{i}}}));
  }));
  EXPECT_TRUE(runs_out(
      [](ProfileBuilder& builder, std::uint32_t i) { builder.AddRow(i, 0, BuilderValues{1}); }));
  EXPECT_TRUE(runs_out(
      [](ProfileBuilder& builder, std::uint32_t i) { builder.AddMoment(0, i, BuilderValues{1}); }));
  EXPECT_FALSE(runs_out([](ProfileBuilder& builder, std::uint32_t) {
    builder.AddRow(builder.Stack(Numbers{1, 2}), builder.Labels({}), BuilderValues{1});
  })) << "what is there already costs nothing";
}

}  // namespace
}  // namespace strobe::internal
