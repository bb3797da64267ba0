#include "strobe/locks/contention_sampling.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "../../src/locks/absl_mutex.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "integration/kept_profiles.h"
#include "strobe/locks/profiled.h"
#include "strobe/testing/profile_check.h"

namespace strobe {
namespace {

using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;

struct KeepingContentionTraits : testing::KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, ContentionProvider>;
};
using ContentionProfiler = BasicProfiler<KeepingContentionTraits>;

constexpr std::int64_t kIntervalNs = 200'000;

std::int64_t NowNs() { return SystemClock().MonotonicNs(); }

// What a function has waited for, by the test's own measure.
struct Truth {
  double waits = 0;
  double delay_ns = 0;
  // Of the estimates that are made of samples.
  double waits_variance = 0;
  double delay_variance = 0;

  void Add(double wait_ns) {
    const double p = -std::expm1(-wait_ns / kIntervalNs);
    waits += 1;
    delay_ns += wait_ns;
    waits_variance += (1 - p) / p + p / 4;  // rounding at random adds at most 1/4 a sample
    delay_variance += wait_ns * wait_ns * (1 - p) / p;
  }
};

// A mutex that measures the waits for it, for the function that waits.
constinit thread_local Truth* truth_here = nullptr;
class MeasuredMutex {
 public:
  bool try_lock() { return mutex_.try_lock(); }
  void lock() {
    const std::int64_t begin_ns = NowNs();
    mutex_.lock();
    // A coarse clock may see no time pass.
    truth_here->Add(static_cast<double>(std::max<std::int64_t>(NowNs() - begin_ns, 1)));
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

Profiled<MeasuredMutex> mutex;

// Holds the lock for that long.
template <int kHoldUs>
STROBE_NOINLINE void HoldFor(Truth& truth) {
  truth_here = &truth;
  mutex.lock();
  const std::int64_t end_ns = NowNs() + kHoldUs * 1000;
  while (NowNs() < end_ns) {
  }
  mutex.unlock();
  asm volatile("" : : "r"(kHoldUs) : "memory");
}

// Two functions with a wait each. The truths of the two add up over all threads.
struct Convoy {
  std::array<Truth, 2> truths;

  // The calling thread's part: each function that often. Then the thread's truths are added.
  void Run(int rounds) {
    std::array<Truth, 2> own;
    for (int i = 0; i < rounds; ++i) {
      HoldFor<40>(own[0]);
      HoldFor<120>(own[1]);
    }
    static std::mutex sum_mutex;
    const std::lock_guard lock(sum_mutex);
    for (std::size_t i = 0; i < truths.size(); ++i) {
      truths[i].waits += own[i].waits;
      truths[i].delay_ns += own[i].delay_ns;
      truths[i].waits_variance += own[i].waits_variance;
      truths[i].delay_variance += own[i].delay_variance;
    }
  }
};
const std::array<Address, 2> kFunctions{reinterpret_cast<Address>(&HoldFor<40>),
                                        reinterpret_cast<Address>(&HoldFor<120>)};

// The function that begins nearest below an address; none is 2.
std::size_t FunctionAt(Address address) {
  const std::array<Address, 2> distances{address - kFunctions[0], address - kFunctions[1]};
  const std::size_t nearest = distances[0] < distances[1] ? 0 : 1;
  return distances[nearest] < 1024 ? nearest : 2;
}

// The column's sums by the function at the stack's leaf, and of all others.
std::array<std::int64_t, 3> SumByFunction(const std::vector<KeptProfile>& kept,
                                          std::string_view type) {
  std::array<std::int64_t, 3> sums{};
  for (const KeptProfile& one : kept) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, type));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      if (frames.empty()) continue;
      sums[FunctionAt(frames.front().address)] += one.profile.Values(i)[column];
    }
  }
  return sums;
}

// The sampling measures the test's measuring, too, and a thread may be interrupted between the two.
void ExpectNear(std::string_view name, double estimate, double truth, double variance) {
  std::cout << name << ": " << estimate << ", in truth " << truth << ", standard deviation "
            << std::sqrt(variance) << "\n";
  EXPECT_NEAR(estimate, truth, 5 * std::sqrt(variance) + 0.03 * truth) << name;
}

constexpr int kThreads = 4;

// Runs body() on some threads at once.
template <class Body>
void RunThreads(const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

// Has threads wait, with or without a registration, and checks what the profiles say.
void ExpectDelaysOfEachFunction(bool is_registered) {
  KeptProfiles::Take();
  ContentionProfiler profiler({.sampling = {.cpu_frequency_hz = 0},
                               .threads = {.ring_bytes = 1 << 20},
                               .exporter = {.period_s = 600}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const ContentionSampling sampling(profiler, {.interval_ns = kIntervalNs});
  ASSERT_EQ(sampling.status(), absl::OkStatus());
  const auto run = [&](Convoy& convoy, int rounds) {
    RunThreads([&] {
      if (!is_registered) return convoy.Run(rounds);
      RunRegistered(profiler, "t", [&] { convoy.Run(rounds); });
    });
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  };
  // Has the unwind tables built. Before, each sample takes a copy of the stack along, and a sample
  // that finds no room for it is added to the next one's stack, as is that of a thread that is not
  // registered.
  Convoy warm_up;
  for (int i = 0; i < 2; ++i) run(warm_up, 100);
  KeptProfiles::Take();
  Convoy convoy;
  while (convoy.truths[0].waits < 300 || convoy.truths[1].waits < 300) run(convoy, 200);
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  const auto waits = SumByFunction(kept, "contentions");
  const auto delays_ns = SumByFunction(kept, "delay");
  for (std::size_t i = 0; i < convoy.truths.size(); ++i) {
    const Truth& truth = convoy.truths[i];
    ExpectNear("waits", static_cast<double>(waits[i]), truth.waits, truth.waits_variance);
    ExpectNear("delay", static_cast<double>(delays_ns[i]), truth.delay_ns, truth.delay_variance);
  }
  EXPECT_EQ(delays_ns[2], 0) << "stacks begin at the function that locks";
  EXPECT_EQ(ContentionSampling::stats().untaken_contentions, 0);
}

TEST(ContentionSampling, FindsTheDelaysOfEachFunction) { ExpectDelaysOfEachFunction(true); }
TEST(ContentionSampling, FindsTheDelaysOfThreadsThatAreNotRegistered) {
  ExpectDelaysOfEachFunction(false);
}

TEST(ContentionSampling, CountsTheWaitsWhileNoSessionRuns) {
  ContentionProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  const ContentionSampling sampling(profiler, {.interval_ns = kIntervalNs});
  Convoy convoy;
  while (convoy.truths[1].waits < 300) RunThreads([&] { convoy.Run(200); });
  const ContentionStats stats = ContentionSampling::stats();
  const auto& [first, second] = convoy.truths;
  ExpectNear("waits", static_cast<double>(stats.untaken_contentions), first.waits + second.waits,
             first.waits_variance + second.waits_variance);
  ExpectNear("delay", static_cast<double>(stats.untaken_delay_ns), first.delay_ns + second.delay_ns,
             first.delay_variance + second.delay_variance);
}

TEST(ContentionSampling, IsOneAtATime) {
  ContentionProfiler profiler;
  const ContentionSampling sampling(profiler, {.absl_mutexes = false});
  EXPECT_EQ(sampling.status(), absl::OkStatus());
  EXPECT_FALSE(ContentionSampling::stats().samples_absl_mutexes);
  {
    const ContentionSampling other(profiler);
    EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  const ContentionSampling third(profiler);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kFailedPrecondition)
      << "the end of one that does nothing ends nothing";
  for (const std::int64_t interval : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    const ContentionSampling wrong(profiler, {.interval_ns = interval});
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Holds a mutex of Abseil for which another thread waits, for some milliseconds. Returns how long
// that thread has waited at most.
STROBE_NOINLINE std::int64_t HoldOfAbseil(absl::Mutex& held) {
  std::atomic<std::int64_t> begin_ns{0};
  internal::LockMutex(held);
  std::thread waiter([&] {
    begin_ns = NowNs();
    internal::LockMutex(held);
    internal::UnlockMutex(held);
  });
  while (begin_ns == 0) std::this_thread::yield();
  const std::int64_t end_ns = begin_ns + 3'000'000;
  while (NowNs() < end_ns) std::this_thread::yield();
  internal::UnlockMutex(held);
  const std::int64_t wait_ns = NowNs() - begin_ns;
  waiter.join();
  return wait_ns;
}

TEST(ContentionSampling, FindsWhoHasHeldAMutexOfAbseil) {
  KeptProfiles::Take();
  ContentionProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const ContentionSampling sampling(profiler, {.interval_ns = 1});
  ASSERT_TRUE(ContentionSampling::stats().samples_absl_mutexes);
  constexpr int kRounds = 50;
  double truth_ns = 0;
  RunRegistered(profiler, "main", [&] {
    absl::Mutex held;
    for (int i = 0; i < kRounds; ++i) truth_ns += static_cast<double>(HoldOfAbseil(held));
  });
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  std::int64_t waits = 0;
  std::int64_t delay_ns = 0;
  for (const KeptProfile& one : KeptProfiles::Take()) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, "contentions"));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      if (std::ranges::none_of(frames, [](const Frame& frame) {
            return frame.address - reinterpret_cast<Address>(&HoldOfAbseil) < 2048;
          }))
        continue;
      waits += one.profile.Values(i)[column];
      delay_ns += one.profile.Values(i)[column + 1];
    }
  }
  std::cout << waits << " waits of " << static_cast<double>(delay_ns) << " ns, in truth at most "
            << truth_ns << " ns\n";
  // On a busy machine, a waiter may be interrupted before it waits.
  EXPECT_GE(waits, kRounds / 2);
  EXPECT_LE(waits, kRounds);
  EXPECT_GE(static_cast<double>(delay_ns), 0.5 * truth_ns);
  EXPECT_LE(static_cast<double>(delay_ns), 1.05 * truth_ns);
}

}  // namespace
}  // namespace strobe
