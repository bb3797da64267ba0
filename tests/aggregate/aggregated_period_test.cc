#include "strobe/aggregate/aggregated_period.h"

#include <gtest/gtest.h>

#include <array>

#include "flat_profile.h"
#include "strobe/aggregate/aggregator.h"

namespace strobe::testing {
namespace {

constexpr std::array<std::int64_t, 1> kOne = {1};
constexpr std::array<std::int64_t, 1> kMinusOne = {-1};

void AddStack(Aggregator& aggregator, std::uint32_t thread, std::uint32_t generation, StackEnd end,
              std::vector<Address> leaf_first) {
  aggregator.Add(thread, {.generation = generation, .end = end, .leaf_first = leaf_first}, kOne);
}

TEST(FillProfile, EmptyPeriodIsAConsistentProfile) {
  Aggregator aggregator(1, kAmpleBytes);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(profile.stacks.size(), 1u);
  EXPECT_TRUE(profile.samples.empty());
  EXPECT_TRUE(profile.threads.empty());
  Profile of_default;
  FillProfile(AggregatedPeriod(), of_default);
  EXPECT_TRUE(of_default.samples.empty());
}

TEST(FillProfile, StacksThatEndEarlyAreMarkedAtTheirRoot) {
  Aggregator aggregator(1, kAmpleBytes);
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
  Aggregator aggregator(1, kAmpleBytes);
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
    Aggregator aggregator(1, kAmpleBytes);
    const std::uint32_t thread = aggregator.AddThread(1, "t");
    AddStack(aggregator, thread, unknown, StackEnd::kComplete, {0x22, 0x11});
    AddStack(aggregator, thread, 5, StackEnd::kComplete, {0x22, 0x11});
    EXPECT_EQ(Flatten(ToProfile(aggregator.Take())), (FlatProfile{{{"t", "11 22"}, {2}}}))
        << unknown;
  }
}

TEST(FillProfile, OldModulesThatNoFrameNeedsAreLeftOut) {
  Aggregator aggregator(1, kAmpleBytes);
  aggregator.SetModules(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "old")}));
  aggregator.SetModules(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x7000, "unused")}));
  const Profile profile = ToProfile(aggregator.Take());
  ASSERT_EQ(profile.modules.size(), 2u);
  EXPECT_EQ(profile.modules[1].path, "unused");
}

TEST(FillProfile, TheProgramIsTheFirstModuleWhereverItLies) {
  Aggregator aggregator(1, kAmpleBytes);
  Module program = MakeModule(0x7000, "main");
  program.kind = ModuleKind::kProgram;
  aggregator.SetModules(1, ModuleMap({MakeModule(0x1000, "library"), program}));
  const Profile profile = ToProfile(aggregator.Take());
  ASSERT_EQ(profile.modules.size(), 2u);
  EXPECT_EQ(profile.modules[0].path, "main");
}

TEST(FillProfile, RowsThatCancelOutLeaveNothingBehind) {
  Aggregator aggregator(1, kAmpleBytes);
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
  Aggregator aggregator(2, kAmpleBytes);
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

TEST(FillProfile, ShortThreadsOfOneNameHaveTheSamplesOfAll) {
  Aggregator aggregator(1, kAmpleBytes);
  const auto add_thread = [&](std::uint64_t id, const char* name, std::int64_t cpu_ns,
                              std::int64_t sampled_ns) {
    const std::uint32_t thread = aggregator.AddThread(id, name);
    if (sampled_ns != 0) {
      aggregator.Add(thread, {.leaf_first = std::array<Address, 1>{0x10 + id}},
                     std::array{sampled_ns});
    }
    aggregator.AddPseudo(thread, PseudoFrame::kResidual, std::array{cpu_ns - sampled_ns});
  };
  add_thread(1, "task", 7, 10);
  for (std::uint64_t id = 2; id < 9; ++id) add_thread(id, "task", 9, 0);
  add_thread(9, "task", 60, 50);
  add_thread(10, "logger", 2, 0);
  AggregatedPeriod period = aggregator.Take();
  period.pooled_below = {50};
  EXPECT_EQ(Flatten(ToProfile(std::move(period))),
            (FlatProfile{
                {{"task", "11"}, {70}}, {{"task", "19"}, {60}}, {{"logger", "[residual]"}, {2}}}));
}

TEST(FillProfile, AThreadThatOwesMoreThanItHasShowsNothing) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  AddStack(aggregator, thread, 0, StackEnd::kComplete, {0x11});
  aggregator.AddPseudo(thread, PseudoFrame::kResidual, std::array<std::int64_t, 1>{-2});
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_TRUE(profile.samples.empty());
  EXPECT_EQ(profile.stats.sums_cut, 1u);
}

// Times by their values, of each row of the thread.
using Moments = std::vector<std::pair<std::int64_t, std::int64_t>>;
Moments MomentsOf(const Profile& profile) {
  Moments moments;
  for (std::size_t i = 0; i < profile.moments.size(); ++i)
    moments.emplace_back(profile.moments[i].time_ns, profile.MomentValues(i)[0]);
  return moments;
}

TEST(FillProfile, MomentsAreInOrderOfTimeAndAddUpToTheirRows) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::uint32_t b = aggregator.AddThread(2, "b");
  const std::array<Address, 1> leaf = {0x11};
  const std::array<Address, 1> other = {0x22};
  const auto add = [&](std::uint32_t thread, const auto& stack, std::int64_t time_ns) {
    aggregator.Add(thread, {.leaf_first = stack}, kOne, {}, time_ns);
  };
  add(a, leaf, 30);
  add(a, leaf, 50);
  add(a, other, 70);
  add(b, leaf, 40);
  aggregator.AddPseudo(a, PseudoFrame::kResidual, std::array<std::int64_t, 1>{297});
  AggregatedPeriod period = aggregator.Take();
  period.unix_offset_ns = 1000;
  const Profile profile = ToProfile(std::move(period));
  EXPECT_EQ(MomentsOf(profile), (Moments{{1030, 100}, {1040, 1}, {1050, 100}, {1070, 100}}));
  const auto label_of = [&](std::size_t moment) {
    return profile.Labels(profile.moments[moment].sample).Text(kThreadNameLabel);
  };
  EXPECT_EQ(label_of(0), "a");
  EXPECT_EQ(label_of(1), "b");
}

TEST(FillProfile, SamplesWithoutATimeStandInTheirRowAlone) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::array<Address, 1> leaf = {0x11};
  aggregator.Add(thread, {.leaf_first = leaf}, kOne, {}, 5);
  aggregator.Add(thread, {.leaf_first = leaf}, kOne);
  aggregator.ExtendLast(thread, kOne, {}, 6);
  aggregator.AddPseudo(thread, PseudoFrame::kResidual, std::array<std::int64_t, 1>{6});
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(profile.values, (std::vector<std::int64_t>{9}));
  EXPECT_EQ(MomentsOf(profile), (Moments{{5, 3}, {6, 3}}));
}

TEST(FillProfile, ARowThatTheClockTakesAwayTakesItsMomentsAlong) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::array<Address, 1> leaf = {0x11};
  aggregator.Add(thread, {.leaf_first = leaf}, kOne, {}, 5);
  aggregator.AddPseudo(thread, PseudoFrame::kResidual, kMinusOne);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_TRUE(profile.samples.empty());
  EXPECT_TRUE(profile.moments.empty());
}

// Threads of one id and name have the same rows, and modules of two generations one frame.
TEST(FillProfile, MomentsOfMergedRowsAreThoseOfAll) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::array<Address, 1> leaf = {0x11};
  for (const std::uint32_t generation : {7u, 8u}) {
    const std::uint32_t thread = aggregator.AddThread(1, "t");
    aggregator.Add(thread, {.generation = generation, .leaf_first = leaf}, kOne, {},
                   20 - generation);
    aggregator.RemoveThread(thread);
  }
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(profile.values, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(MomentsOf(profile), (Moments{{12, 1}, {13, 1}}));
}

TEST(FillProfile, ThreadsAliveAreListedWithoutRows) {
  Aggregator aggregator(1, kAmpleBytes);
  aggregator.AddThread(1, "idle");
  aggregator.RemoveThread(aggregator.AddThread(2, "gone"));
  const Profile profile = ToProfile(aggregator.Take());
  ASSERT_EQ(profile.threads.size(), 1u);
  EXPECT_EQ(profile.threads[0].name, "idle");
  EXPECT_EQ(profile.threads[0].id, 1u);
}

TEST(FillProfile, EqualPeriodsGiveEqualProfiles) {
  const auto run = [] {
    Aggregator aggregator(1, kAmpleBytes);
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
