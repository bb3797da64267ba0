// Threads whose lives are not as one would wish: captures that end late, threads that are gone,
// short ones, and those that wait by thousands.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "strobe/testing/profile_check.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WaitUntil;
using testing::WorkUntil;

// Holds a walk in the middle for as long as a test says, as a debugger or a quota of CPU time does.
struct HoldingUnwinder : DefaultTraits::Unwinder {
  using Base = DefaultTraits::Unwinder;
  using Base::Base;
  static inline constinit std::atomic<bool> is_to_hold{false};
  static inline constinit std::atomic<bool> is_holding{false};
  template <class... Arguments>
  requires requires(const Base& base, Arguments&&... arguments) { base.Unwind(arguments...); }
  WalkResult Unwind(Arguments&&... arguments) const noexcept {
    while (is_to_hold.load()) is_holding.store(true);
    is_holding.store(false);
    return Base::Unwind(arguments...);
  }
};
struct HoldingTraits : testing::KeepingTraits {
  using Platform = NativePlatform;
  using Unwinder = HoldingUnwinder;
};
using HoldingProfiler = BasicProfiler<HoldingTraits>;

ProfilerOptions AtHighRate() { return {.sampling = {.cpu_frequency_hz = 1000}}; }

// A registered thread, whose capture is held. It works until it is told to end.
class HeldWorker {
 public:
  explicit HeldWorker(HoldingProfiler& profiler) {
    HoldingUnwinder::is_to_hold = true;
    thread_ = std::thread([&] {
      RunRegistered(profiler, "held", [&] {
        while (!is_done_.load()) BurnCpu(100'000);
      });
    });
    WaitUntil([] { return HoldingUnwinder::is_holding.load(); });
  }
  // Lets the capture go on.
  static void Release() { HoldingUnwinder::is_to_hold = false; }
  void Join() {
    is_done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> is_done_{false};
  std::thread thread_;
};

TEST(ALateCapture, OfAThreadThatIsGoneBringsNoThread) {
  HoldingProfiler profiler(AtHighRate());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  HeldWorker worker(profiler);
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().waits_abandoned, 1U);
  HeldWorker::Release();
  worker.Join();
  KeptProfiles::Take();
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  ASSERT_TRUE(profiler.Flush().ok());
  ASSERT_TRUE(profiler.Stop().ok());
  for (const auto& kept : KeptProfiles::Take()) {
    EXPECT_EQ(kept.profile.threads.size(), 0U);
    EXPECT_EQ(kept.profile.samples.size(), 0U);
  }
}

// Rings of another size: the memory that the late capture wrote to is not there any more.
TEST(ALateCapture, LeadsNobodyToARingThatIsGone) {
  {
    HoldingProfiler profiler(AtHighRate());
    ASSERT_EQ(profiler.Start(), absl::OkStatus());
    HeldWorker worker(profiler);
    ASSERT_TRUE(profiler.Stop().ok());
    HeldWorker::Release();
    worker.Join();
  }
  HoldingProfiler profiler({.threads = {.ring_bytes = 65536}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  ASSERT_TRUE(profiler.Flush().ok());
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().samples, 0U);
  KeptProfiles::Take();
}

TEST(ALateCapture, HoldsUpItsOwnThreadsNextSessionOnly) {
  HoldingProfiler profiler(AtHighRate());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  HeldWorker worker(profiler);
  ASSERT_TRUE(profiler.Stop().ok());
  KeptProfiles::Take();
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  ASSERT_TRUE(profiler.Flush().ok());
  EXPECT_EQ(profiler.stats().samples, 0U);
  HeldWorker::Release();
  // It is attached as soon as it can be.
  WaitUntil([&] { return profiler.stats().samples > 0; });
  worker.Join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_GT(SumByName(KeptProfiles::Take(), "samples").at("held"), 0);
}

void ExpectNoNegativeValue(const std::vector<KeptProfile>& kept) {
  for (const KeptProfile& one : kept) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    EXPECT_EQ(one.profile.stats.sums_cut, 0U);
  }
}

// Its clock cannot be read when the session ends. The process's clock, around its registration,
// bounds what it can have used; a first period may have begun before.
TEST(AThreadThatIsGone, WithoutUnregisteringKeepsWhatWasSampled) {
  // Neither is ever destroyed: the registration should have been, by its thread.
  static auto* const profiler = new KeepingProfiler(
      {.sampling = {.cpu_frequency_hz = 1000, .trigger = SampleTrigger::kTimers}});
  ASSERT_EQ(profiler->Start(), absl::OkStatus());
  constexpr std::int64_t kPeriodNs = 1'000'000;
  std::int64_t begin_ns = 0;
  std::thread([&] {
    BurnCpu(100'000'000);
    begin_ns = NativePlatform::ProcessCpuTimeNs();
    static auto* const registration = new Registration(profiler->RegisterThread("gone"));
    EXPECT_TRUE(registration->status().ok());
    WorkUntil([] { return profiler->stats().samples > 0; }, [] { BurnCpu(kPeriodNs); });
  }).join();
  const std::int64_t used_ns = NativePlatform::ProcessCpuTimeNs() - begin_ns;
  ASSERT_TRUE(profiler->Stop().ok());
  const auto kept = KeptProfiles::Take();
  ExpectNoNegativeValue(kept);
  const std::int64_t cpu_ns = SumByName(kept, "cpu").at("gone");
  EXPECT_GT(cpu_ns, 0);
  EXPECT_LE(static_cast<double>(cpu_ns),
            static_cast<double>(used_ns) + kPeriodNs * (1 + CpuTimeProvider::kDither));
}

TEST(ShortThreads, AreEachWhatTheirClocksSay) {
  constexpr int kThreads = testing::kIsSlow ? 100 : 400;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 100}, .exporter = {.period_s = 0.05}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  CpuBounds bounds;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&, i] {
      bounds += RunRegistered(profiler, "short", [&] { BurnCpu(1'000'000 + i % 5 * 1'000'000); });
    }).join();
  }
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  ExpectNoNegativeValue(kept);
  EXPECT_GE(SumByName(kept, "cpu").at("short"), bounds.low_ns);
  EXPECT_LE(SumByName(kept, "cpu").at("short"), bounds.high_ns);
}

// KiB of the mappings that want no huge pages: those of the rings. `key` is "Rss:" for those in
// use, "Size:" for all. Without those that no core has, if the caller wants only `in_cores`.
std::int64_t RingKib(const std::string& key, bool in_cores = false) {
  std::ifstream smaps("/proc/self/smaps");
  std::int64_t sum = 0;
  std::int64_t of_mapping = 0;
  for (std::string line; std::getline(smaps, line);) {
    if (line.starts_with(key)) of_mapping = std::stoll(line.substr(key.size()));
    if (!line.starts_with("VmFlags:") || line.find(" nh") == std::string::npos) continue;
    if (!in_cores || line.find(" dd") == std::string::npos) sum += of_mapping;
  }
  return sum;
}

TEST(RingMemory, IsInCoresIfTheOptionSaysSo) {
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizers' own memory looks like rings";
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "the kernel has no huge pages";
  const std::int64_t before = RingKib("Size:", /*in_cores=*/true);
  KeepingProfiler without;
  const Registration first = without.RegisterThread("first");
  EXPECT_EQ(RingKib("Size:", /*in_cores=*/true), before);
  KeepingProfiler with({.threads = {.rings_in_cores = true}});
  const Registration second = with.RegisterThread("second");
  EXPECT_GE(RingKib("Size:", /*in_cores=*/true), before + 64 * 32);
}

TEST(RingMemory, IsThatOfFewPagesAThreadAndGivenBack) {
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizers' own memory looks like rings";
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "the kernel has no huge pages";
  constexpr int kThreads = 64;
  const std::int64_t before = RingKib("Rss:");
  KeepingProfiler profiler(AtHighRate());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  std::atomic<int> sampled{0};
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      RunRegistered(profiler, "sampled", [&] {
        testing::BurnUntilSampled(1'000'000);
        ++sampled;
        sampled.notify_all();
        is_done.wait(false);
      });
    });
  }
  for (int seen = 0; seen < kThreads; seen = sampled.load()) sampled.wait(seen);
  const std::int64_t in_use = RingKib("Rss:") - before;
  EXPECT_GE(in_use, 4 * kThreads);
  // The rings and what walks remember are 60 KiB a thread. At a huge page each, all of it would be
  // in use. A thread waits from its first walk on, so it has written a few small records, and the
  // number of their pages does not depend on the machine's load.
  EXPECT_LE(in_use, 48 * kThreads);
  is_done = true;
  is_done.notify_all();
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_LE(RingKib("Rss:") - before, in_use / 4);
  KeptProfiles::Take();
}

// Polled a thousand times a second, they would take more than a fifth of a core. How long polls are
// put off is proved on virtual time: PollRoundsTest.
TEST(ManyWaitingThreads, ArePolledWithinABudget) {
  constexpr int kThreads = 400;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 1000}});
  std::atomic<int> registered{0};
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto registration = profiler.RegisterThread("waits");
      ++registered;
      registered.notify_all();
      is_done.wait(false);
    });
  }
  for (int seen = 0; seen < kThreads; seen = registered.load()) registered.wait(seen);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const auto begin = std::chrono::steady_clock::now();
  WaitUntil([&] { return profiler.stats().polls_put_off > 0; });
  const auto end = std::chrono::steady_clock::now();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto after = std::chrono::steady_clock::now();
  is_done = true;
  is_done.notify_all();
  for (std::thread& thread : threads) thread.join();
  const std::int64_t wall_ns = SumByName(KeptProfiles::Take(), "wall").at("waits");
  EXPECT_GE(wall_ns, kThreads * (end - begin).count());
  EXPECT_LE(wall_ns, kThreads * (after - before).count());
}

}  // namespace
}  // namespace strobe
