#include "strobe/locks/contention_sampling.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <numeric>
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
#include "support/chance.h"

namespace strobe {
namespace {

using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;

struct KeepingContentionTraits : testing::KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, ContentionProvider>;
};
using ContentionProfiler = BasicProfiler<KeepingContentionTraits>;

std::int64_t NowNs() { return SystemClock().MonotonicNs(); }

// What a function has waited for, by the test's own clocks: one that is read inside of each wait
// that is sampled, and one around it.
struct Truth {
  std::int64_t waits = 0;
  std::int64_t least_ns = 0;
  std::int64_t most_ns = 0;
};

// At an interval of 1 ns a wait of a microsecond is left out with the probability e^-1000: every
// wait is in the profile, with all of its time.
constexpr std::int64_t kEachWait = 1;
constexpr std::int64_t kLeastWaitNs = 1'000;

// A mutex that measures the waits for it, for the function that waits.
constinit thread_local Truth* truth_here = nullptr;
class MeasuredMutex {
 public:
  bool try_lock() { return mutex_.try_lock(); }
  void lock() {
    const std::int64_t begin_ns = NowNs();
    mutex_.lock();
    while (NowNs() - begin_ns < kLeastWaitNs) {
    }
    ++truth_here->waits;
    truth_here->least_ns += NowNs() - begin_ns;
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

Profiled<MeasuredMutex> mutex;

// Holds the lock for that long.
template <int kHoldUs>
[[gnu::noinline]] void HoldFor(Truth& truth) {
  truth_here = &truth;
  const std::int64_t waits = truth.waits;
  const std::int64_t begin_ns = NowNs();
  mutex.lock();
  const std::int64_t locked_ns = NowNs();
  if (truth.waits != waits) truth.most_ns += locked_ns - begin_ns;
  while (NowNs() - locked_ns < kHoldUs * 1000) {
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
      truths[i].least_ns += own[i].least_ns;
      truths[i].most_ns += own[i].most_ns;
    }
  }
  [[nodiscard]] bool HasWaits(std::int64_t count) const {
    return truths[0].waits >= count && truths[1].waits >= count;
  }
};
using Functions = std::array<Address, 2>;
const Functions kHolders{reinterpret_cast<Address>(&HoldFor<40>),
                         reinterpret_cast<Address>(&HoldFor<120>)};

// The one of the functions that begins nearest below an address; none is 2.
std::size_t FunctionAt(const Functions& functions, Address address) {
  const std::array<Address, 2> distances{address - functions[0], address - functions[1]};
  const std::size_t nearest = distances[0] < distances[1] ? 0 : 1;
  return distances[nearest] < 1024 ? nearest : 2;
}

// The column's sums by the function at the stack's leaf, and of all others.
std::array<std::int64_t, 3> SumByFunction(const std::vector<KeptProfile>& kept,
                                          const Functions& functions, std::string_view type) {
  std::array<std::int64_t, 3> sums{};
  for (const KeptProfile& one : kept) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, type));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      if (frames.empty()) continue;
      sums[FunctionAt(functions, frames.front().address)] += one.profile.Values(i)[column];
    }
  }
  return sums;
}

constexpr int kThreads = 4;
constexpr int kRounds = 40;
// How often threads run a convoy at most, until enough of them have waited.
constexpr int kMostRuns = 1000;
constexpr int kEnoughWaits = 20;

// Runs body() on some threads at once.
template <class Body>
void RunThreads(const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

// Calls run() until it returns true and leaves every stack whole by itself: then all unwind tables
// are built. Before, a sample takes a copy of the stack along, and one that finds no room for it is
// added to the next one's stack, as is that of a thread that is not registered.
template <class Run>
void WarmUp(ContentionProfiler& profiler, const Run& run) {
  const auto unfinished = [&] {
    const Stats stats = profiler.stats();
    return std::accumulate(stats.drops.begin(), stats.drops.end(), stats.stacks_deferred);
  };
  bool is_warm = false;
  for (int i = 0; i < kMostRuns && !is_warm; ++i) {
    const std::uint64_t before = unfinished();
    is_warm = run() && unfinished() == before;
  }
  ASSERT_TRUE(is_warm);
  KeptProfiles::Take();
}

// Has threads wait, with or without a registration, and checks what the profiles say.
void ExpectDelaysOfEachFunction(bool is_registered) {
  KeptProfiles::Take();
  ContentionProfiler profiler({.sampling = {.cpu_frequency_hz = 0},
                               .threads = {.ring_bytes = 1 << 20},
                               .exporter = {.period_s = 600}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const ContentionSampling sampling(profiler, {.interval_ns = kEachWait, .absl_mutexes = false});
  ASSERT_EQ(sampling.status(), absl::OkStatus());
  // The rings have room for the waits of a run, however late the collector comes.
  const auto run = [&](Convoy& convoy) {
    RunThreads([&] {
      if (!is_registered) return convoy.Run(kRounds);
      RunRegistered(profiler, "t", [&] { convoy.Run(kRounds); });
    });
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  };
  WarmUp(profiler, [&] {
    Convoy convoy;
    run(convoy);
    return convoy.HasWaits(1);
  });
  Convoy convoy;
  for (int i = 0; i < kMostRuns && !convoy.HasWaits(kEnoughWaits); ++i) run(convoy);
  ASSERT_TRUE(convoy.HasWaits(kEnoughWaits));
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  const auto waits = SumByFunction(kept, kHolders, "contentions");
  const auto delays_ns = SumByFunction(kept, kHolders, "delay");
  for (std::size_t i = 0; i < convoy.truths.size(); ++i) {
    EXPECT_EQ(waits[i], convoy.truths[i].waits);
    EXPECT_GE(delays_ns[i], convoy.truths[i].least_ns);
    EXPECT_LE(delays_ns[i], convoy.truths[i].most_ns);
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
  const ContentionSampling sampling(profiler, {.interval_ns = kEachWait, .absl_mutexes = false});
  Convoy convoy;
  for (int i = 0; i < kMostRuns && !convoy.HasWaits(kEnoughWaits); ++i)
    RunThreads([&] { convoy.Run(kRounds); });
  ASSERT_TRUE(convoy.HasWaits(kEnoughWaits));
  const ContentionStats stats = ContentionSampling::stats();
  const auto& [first, second] = convoy.truths;
  EXPECT_EQ(stats.untaken_contentions, first.waits + second.waits);
  EXPECT_GE(stats.untaken_delay_ns, first.least_ns + second.least_ns);
  EXPECT_LE(stats.untaken_delay_ns, first.most_ns + second.most_ns);
}

// A wait of known length, which no clock measures.
[[gnu::noinline]] void NoteWait(std::int64_t delay_ns) {
  internal::NoteContention(delay_ns);
  asm volatile("" ::: "memory");
}
template <std::int64_t kDelayNs>
[[gnu::noinline]] void WaitFor() {
  NoteWait(kDelayNs);
  asm volatile("" : : "r"(kDelayNs) : "memory");
}

// The samples stand for the waits that are left out. How many there are is decided by the seeds of
// the random numbers alone, of which each wait has one of its own.
TEST(ContentionSampling, SumsAreRightInTheMean) {
  constexpr std::int64_t kIntervalNs = 200'000;
  constexpr std::array<std::int64_t, 2> kDelaysNs{40'000, 120'000};
  constexpr int kWaits = 20'000;         // of each function
  constexpr int kWaitsOfAPeriod = 1000;  // so that no ring is ever full
  KeptProfiles::Take();
  ContentionProfiler profiler({.sampling = {.cpu_frequency_hz = 0},
                               .threads = {.ring_bytes = 1 << 20},
                               .exporter = {.period_s = 600}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const ContentionSampling sampling(profiler, {.interval_ns = kIntervalNs, .absl_mutexes = false});
  RunRegistered(profiler, "main", [&] {
    WarmUp(profiler, [&] {
      NoteWait(1000 * kIntervalNs);  // certainly sampled
      return profiler.Flush().ok();
    });
    for (int i = 0; i < kWaits; ++i) {
      WaitFor<kDelaysNs[0]>();
      WaitFor<kDelaysNs[1]>();
      if (i % kWaitsOfAPeriod != 0) continue;
      ASSERT_EQ(profiler.Flush(), absl::OkStatus());
    }
  });
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const Functions functions{reinterpret_cast<Address>(&WaitFor<kDelaysNs[0]>),
                            reinterpret_cast<Address>(&WaitFor<kDelaysNs[1]>)};
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  const auto waits = SumByFunction(kept, functions, "contentions");
  const auto delays_ns = SumByFunction(kept, functions, "delay");
  for (std::size_t i = 0; i < kDelaysNs.size(); ++i) {
    const double p = -std::expm1(-static_cast<double>(kDelaysNs[i]) / kIntervalNs);
    const std::int64_t of_a_sample = std::llround(static_cast<double>(kDelaysNs[i]) / p);
    EXPECT_EQ(delays_ns[i] % of_a_sample, 0);
    const std::int64_t samples = delays_ns[i] / of_a_sample;
    testing::ExpectWithinChance(static_cast<double>(samples), testing::BinomialBounds(kWaits, p),
                                "samples of waits, from seeds of the clock");
    // A count is rounded at random.
    testing::ExpectWithinChance(
        static_cast<double>(waits[i]) / static_cast<double>(samples),
        testing::BoundedMeanBounds(samples, 1 / p, std::floor(1 / p), std::ceil(1 / p)),
        "waits of a sample, from seeds of the clock");
  }
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

// Holds a mutex of Abseil for which another thread waits, for some milliseconds, of which it says
// how many they were. Returns how long that thread has waited at most.
[[gnu::noinline]] std::int64_t HoldOfAbseil(absl::Mutex& held, std::int64_t& held_ns) {
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
  held_ns = NowNs() - begin_ns;
  internal::UnlockMutex(held);
  const std::int64_t wait_ns = NowNs() - begin_ns;
  waiter.join();
  return wait_ns;
}

// The sum of a column over the samples with the function on the stack.
std::int64_t SumWithHoldOfAbseil(const std::vector<KeptProfile>& kept, std::string_view type) {
  std::int64_t sum = 0;
  for (const KeptProfile& one : kept) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, type));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      if (std::ranges::any_of(frames, [](const Frame& frame) {
            return frame.address - reinterpret_cast<Address>(&HoldOfAbseil) < 2048;
          }))
        sum += one.profile.Values(i)[column];
    }
  }
  return sum;
}

// A waiter may be late, or not wait at all. So rounds go on until one has waited nearly as long as
// the mutex was held. No wait of any round is longer than it was, but for the error of the measured
// rate of Abseil's clock: the 1 % by which its measurements agree, and the time that Abseil spins.
TEST(ContentionSampling, FindsWhoHasHeldAMutexOfAbseil) {
  KeptProfiles::Take();
  ContentionProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const ContentionSampling sampling(profiler, {.interval_ns = 1});
  ASSERT_TRUE(ContentionSampling::stats().samples_absl_mutexes);
  absl::Mutex held;
  std::int64_t waited_ns = 0;
  std::int64_t held_ns = 1;
  const auto round = [&] {
    const std::int64_t most_ns = HoldOfAbseil(held, held_ns);
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
    const std::vector<KeptProfile> kept = KeptProfiles::Take();
    EXPECT_LE(SumWithHoldOfAbseil(kept, "contentions"), 1);
    waited_ns = SumWithHoldOfAbseil(kept, "delay");
    EXPECT_LE(static_cast<double>(waited_ns), 1.05 * static_cast<double>(most_ns));
  };
  RunRegistered(profiler, "main", [&] {
    for (int i = 0; i < kMostRuns && waited_ns < held_ns / 10 * 9; ++i) round();
  });
  EXPECT_GE(waited_ns, held_ns / 10 * 9);
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
}

}  // namespace
}  // namespace strobe
