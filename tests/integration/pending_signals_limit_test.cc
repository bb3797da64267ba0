// Where the system refuses timers, because as many signals are queued or reserved as the user may
// have, threads are sampled all the same.
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using ::testing::HasSubstr;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WaitUntil;
using testing::WorkUntil;

constexpr std::size_t kLimit = 100;
constexpr std::size_t kThreads = 120;
constexpr std::int64_t kWorkNs = 10'000'000;

class PendingSignalsLimit : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = kLimit;
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
    KeptProfiles::Take();
  }
  void TearDown() override { ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &before_), 0); }

 private:
  rlimit before_{};
};

// The threads that have samples in the profiles so far.
std::set<std::string> SampledThreads() {
  std::set<std::string> sampled;
  KeptProfiles::HasProfile([&](const KeptProfile& kept) {
    for (const auto& [name, samples] : SumByName({kept}, "samples")) {
      if (samples > 0) sampled.insert(name);
    }
    return false;
  });
  return sampled;
}

TEST_F(PendingSignalsLimit, ThreadsBeyondItAreSampledWithoutTimers) {
  KeepingProfiler profiler(
      {.sampling = {
           .cpu_frequency_hz = 1000, .trigger = SampleTrigger::kTimers, .max_overhead = 1}});
  ASSERT_TRUE(profiler.Start().ok());
  std::vector<CpuBounds> bounds(kThreads);
  std::atomic<std::size_t> registered{0};
  std::atomic<bool> may_work{false};
  std::vector<std::atomic<bool>> is_sampled(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      bounds[i] = RunRegistered(profiler, std::to_string(i), [&] {
        ++registered;
        may_work.wait(false);
        do BurnCpu(kWorkNs);
        while (!is_sampled[i].load());
      });
    });
  }
  WaitUntil([&] { return registered == kThreads; });
  // Other processes of the user may leave fewer signals than kLimit, and never more.
  WaitUntil([&] { return profiler.stats().threads_at_instants >= kThreads - kLimit; });
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("RLIMIT_SIGPENDING"));
  may_work = true;
  may_work.notify_all();
  WaitUntil([&] {
    EXPECT_TRUE(profiler.Flush().ok());
    const std::set<std::string> sampled = SampledThreads();
    for (std::size_t i = 0; i < kThreads; ++i) is_sampled[i] = sampled.contains(std::to_string(i));
    return sampled.size() == kThreads;
  });
  for (std::atomic<bool>& is_over : is_sampled) is_over = true;  // also if patience has ended
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  auto cpu_ns = SumByName(kept, "cpu");
  for (std::size_t i = 0; i < kThreads; ++i) {
    ASSERT_GE(bounds[i].low_ns, 0);
    EXPECT_GE(cpu_ns[std::to_string(i)], bounds[i].low_ns) << i;
    EXPECT_LE(cpu_ns[std::to_string(i)], bounds[i].high_ns) << i;
  }
}

// If the queue is full, a request loses its payload, and the handler must find the request
// that it serves.
TEST_F(PendingSignalsLimit, RequestsArriveThoughTheQueueIsFull) {
  // Blocked here and in all threads to come: what is queued stays queued.
  const int blocked = SIGRTMIN + 1;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, blocked);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &mask, nullptr), 0);
  std::size_t queued = 0;
  while (queued <= kLimit && pthread_sigqueue(pthread_self(), blocked, sigval{}) == 0) ++queued;
  ASSERT_LE(queued, kLimit);

  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  const CpuBounds bounds = RunRegistered(profiler, "full", [&] {
    BurnCpu(100'000'000);
    WorkUntil([&] { return profiler.stats().samples > 0; }, [] { BurnCpu(kWorkNs); });
  });
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  auto cpu_ns = SumByName(kept, "cpu");
  EXPECT_GE(cpu_ns["full"], bounds.low_ns);
  EXPECT_LE(cpu_ns["full"], bounds.high_ns);

  const timespec none{};
  for (; queued > 0; --queued) EXPECT_EQ(sigtimedwait(&mask, nullptr, &none), blocked);
  ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &mask, nullptr), 0);
}

}  // namespace
}  // namespace strobe
