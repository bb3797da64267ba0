#include "strobe/aggregate/aggregated_period.h"

#include <gtest/gtest.h>

#include <array>

#include "flat_profile.h"
#include "strobe/aggregate/aggregator.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kLimit = 16 << 20;
constexpr std::array<std::int64_t, 1> kOne = {1};
constexpr std::array<std::int64_t, 1> kMinusOne = {-1};

void AddStack(Aggregator& aggregator, std::uint32_t thread, std::uint32_t generation, StackEnd end,
              std::vector<Address> leaf_first) {
  aggregator.Add(thread, {.generation = generation, .end = end, .leaf_first = leaf_first}, kOne);
}

TEST(FillProfile, EmptyPeriodIsAConsistentProfile) {
  Aggregator aggregator(1, kLimit);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(profile.stacks.size(), 1u);
  EXPECT_TRUE(profile.samples.empty());
  EXPECT_TRUE(profile.threads.empty());
  Profile of_default;
  FillProfile(AggregatedPeriod(), of_default);
  EXPECT_TRUE(of_default.samples.empty());
}

TEST(FillProfile, StacksThatEndEarlyAreMarkedAtTheirRoot) {
  Aggregator aggregator(1, kLimit);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  AddStack(aggregator, thread, 0, StackEnd::kComplete, {0x11, 0x22});
  AddStack(aggregator, thread, 0, StackEnd::kTruncated, {0x11, 0x22});
  AddStack(aggregator, thread, 0, StackEnd::kBroken, {0x11, 0x22});
  AddStack(aggregator, thread, 0, StackEnd::kNoUnwindInfo, {0x11, 0x22});
  AddStack(aggregator, thread, 0, StackEnd::kComplete, {});
  aggregator.AddPseudo(thread, PseudoFrame::kBroken, kOne);
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"t", "22 11"}, {1}},
                         {{"t", "[truncated] 22 11"}, {1}},
                         {{"t", "[broken stack] 22 11"}, {1}},
                         {{"t", "[no unwind info] 22 11"}, {1}},
                         {{"t", "[broken stack]"}, {2}}}));
}

TEST(FillProfile, ReloadAtTheSameAddressGivesTwoFrames) {
  Aggregator aggregator(1, kLimit);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  aggregator.SetModules(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "old")}));
  AddStack(aggregator, thread, 1, StackEnd::kComplete, {0x5010, 0x1010});
  aggregator.SetModules(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "new")}));
  AddStack(aggregator, thread, 2, StackEnd::kComplete, {0x5010, 0x1010});
  AddStack(aggregator, thread, 2, StackEnd::kComplete, {0x1010});
  AddStack(aggregator, thread, 1, StackEnd::kComplete, {0x1010});
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(Flatten(profile), (FlatProfile{{{"t", "main:1010 old:5010"}, {1}},
                                           {{"t", "main:1010 new:5010"}, {1}},
                                           {{"t", "main:1010"}, {2}}}));
  ASSERT_EQ(profile.modules.size(), 3u);
  EXPECT_EQ(profile.modules[0].path, "main");
  EXPECT_EQ(profile.modules[1].path, "new") << "the newest map first";
  EXPECT_EQ(profile.frames.size(), 3u);
}

// A record may name any generation, if something has written over the ring.
TEST(FillProfile, GenerationsThatNeverWereShareTheirFrames) {
  for (const std::uint32_t unknown : {std::uint32_t{7}, std::uint32_t{0xFFFFFFFF}}) {
    Aggregator aggregator(1, kLimit);
    const std::uint32_t thread = aggregator.AddThread(1, "t");
    AddStack(aggregator, thread, unknown, StackEnd::kComplete, {0x22, 0x11});
    AddStack(aggregator, thread, 5, StackEnd::kComplete, {0x22, 0x11});
    EXPECT_EQ(Flatten(ToProfile(aggregator.Take())), (FlatProfile{{{"t", "11 22"}, {2}}}))
        << unknown;
  }
}

TEST(FillProfile, OldModulesThatNoFrameNeedsAreLeftOut) {
  Aggregator aggregator(1, kLimit);
  aggregator.SetModules(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "old")}));
  aggregator.SetModules(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x7000, "unused")}));
  const Profile profile = ToProfile(aggregator.Take());
  ASSERT_EQ(profile.modules.size(), 2u);
  EXPECT_EQ(profile.modules[1].path, "unused");
}

TEST(FillProfile, RowsThatCancelOutLeaveNothingBehind) {
  Aggregator aggregator(1, kLimit);
  const std::uint32_t alive = aggregator.AddThread(1, "alive");
  const std::uint32_t ended = aggregator.AddThread(2, "ended");
  AddStack(aggregator, alive, 0, StackEnd::kComplete, {0x22, 0x11});
  for (const auto& values : {kOne, kMinusOne}) {
    aggregator.AddPseudo(ended, PseudoFrame::kResidual, values);
    const std::array<Address, 2> stack = {0x33, 0x11};
    aggregator.Add(ended, {.leaf_first = stack}, values);
  }
  aggregator.RemoveThread(ended);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(Flatten(profile), (FlatProfile{{{"alive", "11 22"}, {1}}}));
  EXPECT_EQ(profile.frames.size(), 2u);
  EXPECT_EQ(profile.stacks.size(), 3u);
  EXPECT_EQ(profile.threads.size(), 1u);
}

TEST(FillProfile, WhatIsLessThanNothingIsTakenFromTheThreadsOwnRows) {
  Aggregator aggregator(2, kLimit);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::uint32_t other = aggregator.AddThread(2, "other");
  const std::array<std::int64_t, 2> ten = {1, 10'000'001};
  aggregator.Add(thread, {.leaf_first = std::array<Address, 1>{0x11}}, ten);
  aggregator.Add(thread, {.leaf_first = std::array<Address, 1>{0x22}}, ten);
  aggregator.Add(other, {.leaf_first = std::array<Address, 1>{0x11}}, ten);
  aggregator.AddPseudo(thread, PseudoFrame::kResidual, std::array<std::int64_t, 2>{0, -5'000'001});
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(Flatten(profile), (FlatProfile{{{"t", "11"}, {1, 7'500'000}},
                                           {{"t", "22"}, {1, 7'500'001}},
                                           {{"other", "11"}, {1, 10'000'001}}}));
  EXPECT_EQ(profile.stats.sums_cut, 0u);
}

TEST(FillProfile, AThreadThatOwesMoreThanItHasShowsNothing) {
  Aggregator aggregator(1, kLimit);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  AddStack(aggregator, thread, 0, StackEnd::kComplete, {0x11});
  aggregator.AddPseudo(thread, PseudoFrame::kResidual, std::array<std::int64_t, 1>{-2});
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_TRUE(profile.samples.empty());
  EXPECT_EQ(profile.stats.sums_cut, 1u);
}

TEST(FillProfile, ThreadsAliveAreListedWithoutRows) {
  Aggregator aggregator(1, kLimit);
  aggregator.AddThread(1, "idle");
  aggregator.RemoveThread(aggregator.AddThread(2, "gone"));
  const Profile profile = ToProfile(aggregator.Take());
  ASSERT_EQ(profile.threads.size(), 1u);
  EXPECT_EQ(profile.threads[0].name, "idle");
  EXPECT_EQ(profile.threads[0].id, 1u);
}

TEST(FillProfile, EqualPeriodsGiveEqualProfiles) {
  const auto run = [] {
    Aggregator aggregator(1, kLimit);
    const std::uint32_t thread = aggregator.AddThread(1, "t");
    for (Address i = 0; i < 3000; ++i) {
      AddStack(aggregator, thread, 0, StackEnd::kComplete,
               {i * 2654435761 % 1021, i * 40503 % 17, 7});
    }
    return ToProfile(aggregator.Take());
  };
  const Profile a = run();
  const Profile b = run();
  EXPECT_EQ(a.frames, b.frames);
  EXPECT_EQ(a.values, b.values);
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (std::size_t i = 0; i < a.samples.size(); ++i)
    EXPECT_EQ(a.samples[i].stack, b.samples[i].stack);
}

}  // namespace
}  // namespace strobe::testing
