// Off-CPU time: what threads wait for, so that it and the CPU time add up to the wall time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/testing/latch.h"

namespace strobe::testing {
namespace {

using Exports = std::vector<CollectingExporter::Exported>;

constexpr std::int64_t kMs = 1'000'000;
// A CPU clock that advances by ticks, such as Wine's, needs longer times.
constexpr bool kHasTicks = !NativePlatform::kHasFineCpuClocks;
constexpr int kRounds = kHasTicks ? 20 : 60;
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

// The amount of a thread's stacks that have the call which returns to `address`.
std::int64_t SumOfCall(const Exports& exports, std::string_view type, Address address) {
  return SumIf(exports, type, [&](const Profile& profile, const ProfileSample& sample) {
    bool found = false;
    VisitFrames(profile, sample,
                [&](const Frame& frame) { found |= frame.address == address - 1; });
    return found;
  });
}

// The last thing that each thread does is to wait, so none has used more CPU time than there was
// since its off-CPU time was read last.
TEST(OffCpu, IsWhatThreadsWaitForAndCompletesTheCpuTime) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 200, .wall_frequency_hz = 200},
       .exporter = {.period_s = 0.2}});
  ASSERT_TRUE(profiler.Start().ok());
  Latch has_worked(1);
  std::int64_t wall_ns = 0;
  std::thread waiter([&] {
    const Registration registration = profiler.RegisterThread("waiter");
    has_worked.wait();
  });
  std::thread([&] {
    const std::int64_t begin_ns = MonotonicNs();
    {
      const Registration registration = profiler.RegisterThread("mixed");
      for (int i = 0; i < kRounds; ++i) {
        Burn();
        Wait();
      }
    }
    wall_ns = MonotonicNs() - begin_ns;
  }).join();
  has_worked.count_down();
  waiter.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  EXPECT_GT(exports.size(), 2U);
  for (const std::string_view thread : {"mixed", "waiter"}) {
    EXPECT_EQ(SumOfThread(exports, "off_cpu", thread),
              SumOfThread(exports, "wall", thread) - SumOfThread(exports, "cpu", thread))
        << thread;
    EXPECT_GT(SumOfThread(exports, "off_cpu", thread), kRounds * kSleepNs * 9 / 10) << thread;
  }
  const std::int64_t mixed_ns = SumOfThread(exports, "off_cpu", "mixed");
  EXPECT_LT(mixed_ns, wall_ns - kRounds * kBurnNs * 9 / 10);
  if (kSignalsAreLate) return;
  // By ticks, a thread that has had no CPU for long looks as if it waited. On a machine that has
  // kept the thread from its CPUs, the shares say little then.
  if (kHasTicks && mixed_ns > kRounds * kSleepNs * 11 / 10) return;
  // The thread may end its wait between the look and the interruption of the look.
  constexpr std::int64_t kTolerance = kHasTicks ? 4 : 10;
  EXPECT_GT(SumOfCall(exports, "off_cpu", waits_from), mixed_ns - mixed_ns / kTolerance);
  EXPECT_LT(SumOfCall(exports, "off_cpu", burns_from), mixed_ns / kTolerance);
  EXPECT_GT(SumOfCall(exports, "wall", burns_from), 0);
  EXPECT_LT(SumOfCall(exports, "cpu", waits_from), kRounds * kBurnNs / 2);
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
