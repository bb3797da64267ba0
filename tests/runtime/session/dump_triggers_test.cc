#include "strobe/runtime/session/dump_triggers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kStepMs = 1'000'000;
constexpr std::int64_t kTriggerSecondNs = 1'000'000'000;

// The process, in steps of 60 ms: the time between two drains.
struct UsedProcess {
  TriggerInput input{.now_ns = 5 * kTriggerSecondNs, .process_cpu_ns = 3 * kTriggerSecondNs};

  // Runs for so long at so many percent of one CPU. Returns how often the trigger has fired.
  template <class Trigger>
  int Run(Trigger& trigger, double seconds, double percent) {
    int fired = 0;
    const std::int64_t end_ns = input.now_ns + static_cast<std::int64_t>(seconds * 1e9);
    while (input.now_ns < end_ns) {
      input.now_ns += 60 * kStepMs;
      input.process_cpu_ns += static_cast<std::int64_t>(60e6 * percent / 100);
      if (trigger.Check(input)) ++fired;
    }
    return fired;
  }
};

TEST(CpuTrigger, FiresOnceWhenTheUseHasLastedAndAgainAfterARest) {
  CpuTrigger trigger({.cpu_percent = 80, .cpu_s = 5});
  UsedProcess process;
  EXPECT_EQ(process.Run(trigger, 60, 70), 0) << "too little";
  EXPECT_EQ(process.Run(trigger, 4, 100), 0) << "too short";
  EXPECT_EQ(process.Run(trigger, 10, 10), 0);
  EXPECT_EQ(process.Run(trigger, 3, 100), 0);
  EXPECT_EQ(process.Run(trigger, 60, 100), 1) << "once, however long it lasts";
  EXPECT_EQ(process.Run(trigger, 10, 10), 0);
  EXPECT_EQ(process.Run(trigger, 10, 150), 1);
}

TEST(CpuTrigger, SaysWhy) {
  CpuTrigger trigger({.cpu_percent = 150, .cpu_s = 2});
  EXPECT_EQ(trigger.Check({.now_ns = 0}), std::nullopt);
  EXPECT_EQ(trigger.Check({.now_ns = kTriggerSecondNs, .process_cpu_ns = 2 * kTriggerSecondNs}),
            std::nullopt);
  EXPECT_EQ(trigger.Check({.now_ns = 2 * kTriggerSecondNs, .process_cpu_ns = 4 * kTriggerSecondNs}),
            "trigger: at least 150 % of a CPU for 2.0 s");
}

TEST(CpuTrigger, IsOffByDefault) {
  CpuTrigger trigger(KeepOptions{});
  UsedProcess process;
  EXPECT_EQ(process.Run(trigger, 60, 1000), 0);
}

constexpr std::int64_t kTriggerMiB = 1 << 20;

TEST(MemoryTrigger, FiresOnceAtItsLimitAndAgainAfterItWasBelow) {
  MemoryTrigger trigger({.memory_bytes = 100 * kTriggerMiB});
  EXPECT_EQ(trigger.Check({.memory_bytes = 50 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 101 * kTriggerMiB}),
            "trigger: 101.0 MiB of resident memory");
  EXPECT_EQ(trigger.Check({.memory_bytes = 99 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 120 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 89 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = -1}), std::nullopt) << "not known";
  EXPECT_EQ(trigger.Check({.memory_bytes = 100 * kTriggerMiB}),
            "trigger: 100.0 MiB of resident memory");
}

TEST(MemoryTrigger, WhatWasThereBeforeTheSessionIsNoMoment) {
  MemoryTrigger trigger({.memory_bytes = 100 * kTriggerMiB});
  EXPECT_EQ(trigger.Check({.memory_bytes = 200 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 209 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 50 * kTriggerMiB}), std::nullopt);
  EXPECT_NE(trigger.Check({.memory_bytes = 200 * kTriggerMiB}), std::nullopt);
}

TEST(GrowthTrigger, FiresAtEachGrowthFromTheLeast) {
  GrowthTrigger trigger({.memory_growth_bytes = 10 * kTriggerMiB});
  EXPECT_EQ(trigger.Check({.memory_bytes = -1}), std::nullopt) << "not known";
  EXPECT_EQ(trigger.Check({.memory_bytes = 50 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 59 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 60 * kTriggerMiB}),
            "trigger: resident memory grew by 10.0 MiB to 60.0 MiB");
  EXPECT_EQ(trigger.Check({.memory_bytes = 69 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 30 * kTriggerMiB}), std::nullopt);
  EXPECT_EQ(trigger.Check({.memory_bytes = 45 * kTriggerMiB}),
            "trigger: resident memory grew by 15.0 MiB to 45.0 MiB");
}

TEST(MemoryAndGrowthTrigger, AreOffByDefault) {
  MemoryTrigger limit(KeepOptions{});
  GrowthTrigger growth(KeepOptions{});
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1} << 50}) {
    EXPECT_EQ(limit.Check({.memory_bytes = bytes}), std::nullopt);
    EXPECT_EQ(growth.Check({.memory_bytes = bytes}), std::nullopt);
  }
  EXPECT_FALSE(DumpTriggers(KeepOptions{}).needs_memory());
  EXPECT_TRUE(DumpTriggers({.memory_bytes = 1}).needs_memory());
  EXPECT_TRUE(DumpTriggers({.memory_growth_bytes = 1}).needs_memory());
}

TEST(SlowSpanTrigger, FiresForEachDrainThatFindsNewOnes) {
  SlowSpanTrigger trigger({.slow_spans = true});
  EXPECT_EQ(trigger.Check({.slow_spans = 100}), std::nullopt) << "they were before the session";
  EXPECT_EQ(trigger.Check({.slow_spans = 100}), std::nullopt);
  EXPECT_EQ(trigger.Check({.slow_spans = 102}), "trigger: slow spans: 2");
  EXPECT_EQ(trigger.Check({.slow_spans = 102}), std::nullopt);
  SlowSpanTrigger off(KeepOptions{});
  EXPECT_EQ(off.Check({.slow_spans = 1}), std::nullopt);
  EXPECT_EQ(off.Check({.slow_spans = 2}), std::nullopt);
}

TEST(LimitTrigger, SaysWhichLimitWasExceeded) {
  LimitTrigger trigger(KeepOptions{});
  EXPECT_EQ(trigger.Check({.limits = ReachedLimits::count()}), std::nullopt);
  ReachedLimits::Note("queue depth", 120, 100);
  EXPECT_EQ(trigger.Check({.limits = ReachedLimits::count()}),
            "trigger: queue depth is 120, more than 100");
  EXPECT_EQ(trigger.Check({.limits = ReachedLimits::count()}), std::nullopt);
}

TEST(DumpTriggers, FireAtMostOnceAMinuteAndCountTheOthers) {
  DumpTriggers triggers({.slow_spans = true});
  TriggerInput input{.now_ns = kTriggerSecondNs, .limits = ReachedLimits::count()};
  EXPECT_EQ(triggers.Check(input), std::nullopt);
  int dumps = 0;
  for (int second = 0; second < 150; ++second) {
    input.now_ns += kTriggerSecondNs;
    ++input.slow_spans;
    if (!triggers.Check(input)) continue;
    ++dumps;
    triggers.EndMoment(input.now_ns);
  }
  EXPECT_EQ(dumps, 3) << "after 0, 60 and 120 s";
  EXPECT_EQ(triggers.skipped(), 147u);
}

// The system may kill the program within that minute.
TEST(DumpTriggers, TheLimitOfMemoryDoesNotWaitForTheMinuteOfOthers) {
  DumpTriggers triggers(
      {.memory_bytes = 1000 * kTriggerMiB, .memory_growth_bytes = 100 * kTriggerMiB});
  TriggerInput input{.now_ns = kTriggerSecondNs, .limits = ReachedLimits::count()};
  std::vector<std::int64_t> dumps_s;
  for (int second = 0; second < 130; ++second, input.now_ns += kTriggerSecondNs) {
    // Grows by 50 MiB a second, and falls below the limit for a second at times.
    input.memory_bytes = (second % 10 == 9 ? 500 : 50 * second) * kTriggerMiB;
    if (!triggers.Check(input)) continue;
    dumps_s.push_back(second);
    triggers.EndMoment(input.now_ns);
  }
  EXPECT_THAT(dumps_s, ::testing::ElementsAre(2, 20, 80)) << "growth, the limit, a minute later";
  EXPECT_GT(triggers.skipped(), 0u);
}

TEST(DumpTriggers, TheLimitOfMemoryJoinsADumpThatWaits) {
  DumpTriggers triggers({.memory_bytes = 10 * kTriggerMiB, .slow_spans = true});
  TriggerInput input{.now_ns = 1, .memory_bytes = 0, .limits = ReachedLimits::count()};
  EXPECT_EQ(triggers.Check(input), std::nullopt);
  input.slow_spans = 1;
  EXPECT_EQ(triggers.Check(input), "trigger: slow spans: 1");
  input.memory_bytes = 10 * kTriggerMiB;
  EXPECT_EQ(triggers.Check(input), "trigger: slow spans: 1; trigger: 10.0 MiB of resident memory");
  EXPECT_EQ(triggers.skipped(), 0u);
}

TEST(DumpTriggers, AMomentIsThereUntilItsDumpIsUnderWay) {
  DumpTriggers triggers({.slow_spans = true});
  TriggerInput input{.now_ns = kTriggerSecondNs, .limits = ReachedLimits::count()};
  EXPECT_EQ(triggers.Check(input), std::nullopt);
  EXPECT_FALSE(triggers.has_moment());
  input.slow_spans = 1;
  for (int drain = 0; drain < 3; ++drain) {
    input.now_ns += kTriggerSecondNs;
    EXPECT_EQ(triggers.Check(input), "trigger: slow spans: 1") << drain;
  }
  EXPECT_TRUE(triggers.has_moment());
  EXPECT_EQ(triggers.skipped(), 0u);
  input.slow_spans = 3;
  EXPECT_EQ(triggers.Check(input), "trigger: slow spans: 1");
  EXPECT_EQ(triggers.skipped(), 1u) << "it shares the dump of the first";
  triggers.EndMoment(input.now_ns);
  EXPECT_EQ(triggers.Check(input), std::nullopt);
  EXPECT_FALSE(triggers.has_moment());
}

TEST(DumpTriggers, OneDumpHasTheReasonsOfAll) {
  DumpTriggers triggers({.slow_spans = true});
  EXPECT_EQ(triggers.Check({.now_ns = 1, .limits = ReachedLimits::count()}), std::nullopt);
  ReachedLimits::Note("latency_ns", 9, 7);
  EXPECT_EQ(triggers.Check({.now_ns = 2, .slow_spans = 1, .limits = ReachedLimits::count()}),
            "trigger: slow spans: 1; trigger: latency_ns is 9, more than 7");
  EXPECT_EQ(triggers.skipped(), 0u);
}

}  // namespace
}  // namespace strobe::internal
