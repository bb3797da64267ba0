// Many short threads, some of them registered: every nanosecond of theirs is in the profile, under
// its own name.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WorkUntil;

constexpr int kThreads = testing::kIsSlow ? 4'000 : 100'000;
constexpr int kRegisteredEvery = 10;
// Of the threads that a spawner has begun. The collector has then made room for as many more,
// however rarely the system runs it.
constexpr int kFlushEvery = 1'000;
constexpr int kSpawners = 4;
constexpr int kNames = 7;
constexpr std::int64_t kShortLifeNs = 30'000;

struct Totals {
  std::mutex mutex;
  std::array<CpuBounds, kNames> bounds;
  std::atomic<int> refused{0};
};

void SpawnShortThreads(KeepingProfiler& profiler, int first, Totals& totals) {
  for (int i = first; i < kThreads; i += kSpawners) {
    if (i / kSpawners % kFlushEvery == kFlushEvery - 1) {
      EXPECT_TRUE(profiler.Flush().ok());
    }
    std::thread([&profiler, &totals, i] {
      if (i / kSpawners % kRegisteredEvery != 0) return;
      const int name = i / kSpawners / kRegisteredEvery % kNames;
      const CpuBounds bounds =
          RunRegistered(profiler, "churn " + std::to_string(name), [] { BurnCpu(kShortLifeNs); });
      if (bounds.high_ns < 0) ++totals.refused;
      const std::lock_guard lock(totals.mutex);
      totals.bounds[static_cast<std::size_t>(name)] += bounds;
    }).join();
  }
}

TEST(ThreadChurn, EveryShortThreadIsAccountedFor) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  Totals totals;
  CpuBounds long_bounds;
  {
    BasicScopedProfiler session(profiler);
    ASSERT_TRUE(session.status().ok()) << session.status();
    // One thread outlives them all.
    long_bounds = RunRegistered(profiler, "long", [&] {
      BurnCpu(200'000'000);
      WorkUntil([&] { return profiler.stats().samples > 0; }, [] { BurnCpu(1'000'000); });
      std::vector<std::thread> spawners;
      for (int i = 0; i < kSpawners; ++i)
        spawners.emplace_back([&, i] { SpawnShortThreads(profiler, i, totals); });
      for (std::thread& spawner : spawners) spawner.join();
    });
  }
  EXPECT_EQ(totals.refused, 0);
  const auto kept = KeptProfiles::Take();
  ASSERT_FALSE(kept.empty());
  const auto cpu_ns = SumByName(kept, "cpu");
  EXPECT_EQ(cpu_ns.size(), kNames + 1U);
  for (int name = 0; name < kNames; ++name) {
    const CpuBounds& bounds = totals.bounds[static_cast<std::size_t>(name)];
    const std::int64_t sampled_ns = cpu_ns.at("churn " + std::to_string(name));
    EXPECT_GE(sampled_ns, bounds.low_ns);
    EXPECT_LE(sampled_ns, bounds.high_ns);
  }
  EXPECT_GE(cpu_ns.at("long"), long_bounds.low_ns);
  EXPECT_LE(cpu_ns.at("long"), long_bounds.high_ns);
  EXPECT_GT(SumByName(kept, "samples").at("long"), 0);
  const Stats stats = profiler.stats();
  EXPECT_EQ(stats.threads_registered, 0U);
  // No thread's account was closed by another.
  EXPECT_EQ(stats.waits_abandoned, 0U);
  // Ended threads' slots were used again: memory is that of those between two flushes.
  EXPECT_LT(stats.memory_bytes, 64U << 20);
}

// The kernel gives a thread id away again; a thread that registers twice has the same one twice by
// construction.
TEST(ThreadChurn, OneThreadIdUnderTwoNames) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  CpuBounds first;
  CpuBounds second;
  {
    const BasicScopedProfiler session(profiler);
    std::thread([&] {
      first = RunRegistered(profiler, "first", [] { BurnCpu(20'000'000); });
      second = RunRegistered(profiler, "second", [] { BurnCpu(40'000'000); });
    }).join();
  }
  const auto kept = KeptProfiles::Take();
  const auto cpu_ns = SumByName(kept, "cpu");
  ASSERT_EQ(cpu_ns.size(), 2U);
  EXPECT_GE(cpu_ns.at("first"), first.low_ns);
  EXPECT_LE(cpu_ns.at("first"), first.high_ns);
  EXPECT_GE(cpu_ns.at("second"), second.low_ns);
  EXPECT_LE(cpu_ns.at("second"), second.high_ns);
  ASSERT_EQ(kept.back().profile.threads.size(), 2U);
  EXPECT_EQ(kept.back().profile.threads[0].id, kept.back().profile.threads[1].id);
}

}  // namespace
}  // namespace strobe
