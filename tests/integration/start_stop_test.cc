// Sessions that begin and end under busy threads, some of which come and go meanwhile.
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::ThreadCpuNs;

constexpr int kSessions = testing::kIsSanitized ? 100 : 1'000;

TEST(StartStop, ThousandTimesUnderLoad) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  std::atomic<bool> is_done{false};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  // Two that stay and two that register and end all the time.
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      RunRegistered(profiler, "stays " + std::to_string(i), [&] {
        while (!is_done.load()) BurnCpu(100'000);
      });
    });
    threads.emplace_back([&] {
      while (!is_done.load()) {
        if (RunRegistered(profiler, "goes", [] { BurnCpu(20'000); }).low_ns < 0) ++refused;
      }
    });
  }
  RunRegistered(profiler, "main", [&] {
    for (int i = 0; i < kSessions; ++i) {
      const std::int64_t before_ns = ThreadCpuNs();
      ASSERT_TRUE(profiler.Start().ok());
      const std::int64_t begin_ns = ThreadCpuNs();
      const std::int64_t end_ns = ThreadCpuNs();
      ASSERT_TRUE(profiler.Stop().ok());
      const std::int64_t after_ns = ThreadCpuNs();
      const auto kept = KeptProfiles::Take();
      ASSERT_EQ(kept.size(), 1U);
      EXPECT_EQ(kept[0].profile.sequence, static_cast<std::uint64_t>(i));
      const auto cpu_ns = SumByName(kept, "cpu");
      ASSERT_TRUE(cpu_ns.contains("main"));
      EXPECT_GE(cpu_ns.at("main"), end_ns - begin_ns);
      EXPECT_LE(cpu_ns.at("main"), after_ns - before_ns);
    }
  });
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(profiler.stats().exports, static_cast<std::uint64_t>(kSessions));
  EXPECT_EQ(profiler.stats().threads_registered, 0U);
}

// A slot whose registration ended while a session began must serve its next owner as well as any other.
TEST(StartStop, WhoeverRegistersAfterTheStormIsSampled) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_done.load()) RunRegistered(profiler, "storm", [] {});
    });
  }
  for (int i = 0; i < kSessions / 2; ++i) {
    ASSERT_TRUE(profiler.Start().ok());
    ASSERT_TRUE(profiler.Stop().ok());
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  KeptProfiles::Take();
  ASSERT_TRUE(profiler.Start().ok());
  // As many at a time as there were in the storm, so that every slot is used again.
  std::atomic<int> registered{0};
  std::vector<testing::CpuBounds> bounds(4);
  threads.clear();
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    threads.emplace_back([&, i] {
      bounds[i] = RunRegistered(profiler, "after " + std::to_string(i), [&] {
        ++registered;
        while (registered.load() < static_cast<int>(bounds.size())) std::this_thread::yield();
        BurnCpu(20'000'000);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto cpu_ns = SumByName(KeptProfiles::Take(), "cpu");
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const std::string name = "after " + std::to_string(i);
    ASSERT_TRUE(cpu_ns.contains(name)) << name << " was not sampled";
    EXPECT_GE(cpu_ns.at(name), bounds[i].low_ns);
    EXPECT_LE(cpu_ns.at(name), bounds[i].high_ns);
  }
}

}  // namespace
}  // namespace strobe
