// Sessions that begin and end under busy threads, some of which come and go meanwhile.
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
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

// Calls a hook when the CPU clock of that thread is read: a session does for each thread that it
// begins with, and the collector reads its own.
struct HookedPlatform : NativePlatform {
  static inline std::function<void()> hook;
  static inline std::uint64_t thread_id = 0;
  static inline std::atomic<bool> is_armed{false};
  static std::int64_t ThreadCpuTimeNs(std::uint64_t id) {
    if (id == thread_id && is_armed.exchange(false)) hook();
    return NativePlatform::ThreadCpuTimeNs(id);
  }
};
struct HookedTraits : testing::KeepingTraits {
  using Platform = HookedPlatform;
};

constexpr int kSessions = testing::kIsSlow ? 100 : 1'000;

// However rarely the collector runs, there is room for the threads that come and go meanwhile.
TEST(StartStop, ThousandTimesUnderLoad) {
  KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 1000}, .threads = {.max_threads = 262144}});
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
      auto cpu_ns = SumByName(kept, "cpu");  // none of main's where its clock stood still
      EXPECT_GE(cpu_ns["main"], end_ns - begin_ns);
      EXPECT_LE(cpu_ns["main"], after_ns - before_ns);
    }
  });
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(profiler.stats().exports, static_cast<std::uint64_t>(kSessions));
  EXPECT_EQ(profiler.stats().threads_registered, 0U);
}

// A registration that ends while a session is attaching the threads that it found: that slot is
// left alone, and serves its next owner.
TEST(StartStop, RegistrationEndsWhileASessionBegins) {
  BasicProfiler<HookedTraits> profiler({.sampling = {.cpu_frequency_hz = 1000}});
  const auto registration = profiler.RegisterThread("main");
  testing::CpuBounds bounds;
  std::promise<void> is_registered;
  std::promise<void> may_end;
  std::promise<void> has_ended;
  std::promise<void> may_register_again;
  std::thread other([&] {
    RunRegistered(profiler, "ends", [&] {
      is_registered.set_value();
      may_end.get_future().wait();
    });
    has_ended.set_value();
    may_register_again.get_future().wait();
    bounds = RunRegistered(profiler, "again", [] { BurnCpu(20'000'000); });
  });
  is_registered.get_future().wait();
  HookedPlatform::hook = [&] {
    may_end.set_value();
    has_ended.get_future().wait();
  };
  HookedPlatform::thread_id = NativePlatform::CurrentThreadId();
  HookedPlatform::is_armed = true;
  ASSERT_TRUE(profiler.Start().ok());
  ASSERT_FALSE(HookedPlatform::is_armed);
  ASSERT_TRUE(profiler.Flush().ok());  // the slot is free again
  may_register_again.set_value();
  other.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto cpu_ns = SumByName(KeptProfiles::Take(), "cpu");
  EXPECT_FALSE(cpu_ns.contains("ends"));
  ASSERT_TRUE(cpu_ns.contains("again"));
  EXPECT_GE(cpu_ns.at("again"), bounds.low_ns);
  EXPECT_LE(cpu_ns.at("again"), bounds.high_ns);
}

// A slot whose registration ended while a session began must serve its next owner as well as any
// other.
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
