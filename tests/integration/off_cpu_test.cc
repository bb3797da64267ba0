// Off-CPU time: what threads wait for, so that it and the CPU time add up to the wall time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/testing/latch.h"
#include "support/until_seen.h"

namespace strobe::testing {
namespace {

using Exports = std::vector<CollectingExporter::Exported>;

constexpr std::int64_t kMs = 1'000'000;
// A CPU clock that advances by ticks, such as Wine's, needs longer times.
constexpr bool kHasTicks = !NativePlatform::kHasFineCpuClocks;
constexpr int kRounds = 5;  // in a period
constexpr std::size_t kPeriods = 3;
constexpr std::int64_t kBurnNs = (kHasTicks ? 40 : 5) * kMs;
constexpr std::int64_t kSleepNs = (kHasTicks ? 80 : 20) * kMs;

// Where the functions below were called.
Address burns_from = 0;
Address waits_from = 0;

[[gnu::noinline]] void Burn() {
  burns_from = reinterpret_cast<Address>(__builtin_return_address(0));
  BurnCpu(kBurnNs);
}
[[gnu::noinline]] void Wait() {
  waits_from = reinterpret_cast<Address>(__builtin_return_address(0));
  std::this_thread::sleep_for(std::chrono::nanoseconds(kSleepNs));
}

// Whether the stack has the call which returns to `address`.
bool HasCall(const Profile& profile, const ProfileSample& sample, Address address) {
  bool found = false;
  VisitFrames(profile, sample, [&](const Frame& frame) { found |= frame.address == address - 1; });
  return found;
}
std::int64_t SumOfCall(const Exports& exports, std::string_view type, Address address) {
  return SumIf(exports, type, [&](const Profile& profile, const ProfileSample& sample) {
    return HasCall(profile, sample, address);
  });
}

void ExpectAmountsOf(const Exports& exports, const std::string& thread, const Brackets& brackets) {
  ExpectWithin(exports, "wall", thread, brackets.wall);
  ExpectWithin(exports, "cpu", thread, brackets.cpu);
  EXPECT_EQ(SumOfThread(exports, "off_cpu", thread),
            SumOfThread(exports, "wall", thread) - SumOfThread(exports, "cpu", thread))
      << thread;
}

// The periods in which a stack that is found running surely has no off-CPU time. A poll that
// interrupts a thread because it waits may find the stack at which the thread runs on, and so may
// the next poll, until a wait has been walked. By ticks, a thread that has had no CPU for long
// looks as if it waited.
Exports PeriodsThatTell(const Exports& exports) {
  const auto interrupts = [](const Stats& stats) {
    return stats.waits_interrupted + stats.waits_hidden > 0;
  };
  Exports found;
  for (std::size_t i = 1; i < exports.size() && !kHasTicks; ++i) {
    const Stats& before = exports[i - 1].profile.stats;
    if (before.waits_walked > 0 && !interrupts(before) && !interrupts(exports[i].profile.stats))
      found.push_back(exports[i]);
  }
  return found;
}

// Whether the stacks of both functions have been seen, in enough periods.
bool HaveAllCome(const Exports& exports) {
  if (exports.size() < kPeriods || kSignalsAreLate) return exports.size() >= kPeriods;
  if (!kHasTicks && PeriodsThatTell(exports).size() < kPeriods) return false;
  return SumOfCall(exports, "off_cpu", waits_from) > 0 &&
         SumOfCall(exports, "wall", burns_from) > 0 && SumOfCall(exports, "cpu", burns_from) > 0;
}

// Each thread waits after its off-CPU time has been read, and last of all. So no thread has used
// more CPU time than there was since.
TEST(OffCpu, IsWhatThreadsWaitForAndCompletesTheCpuTime) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 200, .wall_frequency_hz = 200},
       .exporter = {.period_s = 3600}});
  ASSERT_TRUE(profiler.Start().ok());
  Exports exports;
  const auto take = [&] {
    for (auto& exported : CollectingExporter::Take()) exports.push_back(std::move(exported));
  };
  Latch has_worked(1);
  Brackets waiter_brackets;
  Brackets mixed_brackets;
  std::thread waiter(
      [&] { waiter_brackets = RunBracketed(profiler, "waiter", [&] { has_worked.wait(); }); });
  std::thread([&] {
    mixed_brackets = RunBracketed(profiler, "mixed", [&] {
      WorkUntil([&] { return HaveAllCome(exports); },
                [&] {
                  for (int i = 0; i < kRounds; ++i) {
                    Burn();
                    if (i == kRounds - 1) {
                      EXPECT_EQ(profiler.Flush(), absl::OkStatus());
                    }
                    Wait();
                  }
                  take();
                });
      Wait();
    });
  }).join();
  has_worked.count_down();
  waiter.join();
  ASSERT_TRUE(profiler.Stop().ok());
  take();
  ExpectAmountsOf(exports, "mixed", mixed_brackets);
  ExpectAmountsOf(exports, "waiter", waiter_brackets);
  if (kSignalsAreLate) return;
  for (const auto& [profile, bytes] : PeriodsThatTell(exports)) {
    const auto column = static_cast<std::size_t>(ColumnOf(profile, "off_cpu"));
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      if (HasCall(profile, profile.samples[i], burns_from)) {
        EXPECT_EQ(profile.Values(i)[column], 0);
      }
    }
  }
}

// Without wall sampling there is no such column.
TEST(OffCpu, IsNotThereWithoutWallSampling) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler;
  ASSERT_TRUE(profiler.Start().ok());
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 1U);
  EXPECT_EQ(ColumnOf(exports[0].profile, "off_cpu"), -1);
}

}  // namespace
}  // namespace strobe::testing
