#include "strobe/runtime/polls/idle_threads.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include "../as_collector.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;

constexpr std::int64_t kMaxNs = 5'000'000;
constexpr int kStillPolls = IdleThreads<ManualPlatform>::kStillPolls;

class IdleThreadsTest : public testing::AsCollector {
 protected:
  // The thread `index`, whose thread has the same number.
  void PollThread(std::uint32_t index, std::int64_t attach_cpu_ns = 0) {
    idle_threads_.Note(index, attach_cpu_ns, ManualPlatform::ThreadCpuTimeNs(index));
  }
  // How many of three idle threads were polled in a round, after the polls of the busy ones.
  template <class PollBusy = void (*)()>
  int Round(PollBusy poll_busy = [] {}) {
    idle_threads_.BeginRound();
    poll_busy();
    std::array<int, 3> idle{};
    idle_threads_.EndRound(std::span<int>(idle), kMaxNs, [](int& thread) { ++thread; });
    for (const int polls : idle) EXPECT_LE(polls, 1);
    EXPECT_EQ(idle[0], 1)
        << "a clock that is not what it should be must not hide a thread for ever";
    return std::accumulate(idle.begin(), idle.end(), 0);
  }

  IdleThreads<ManualPlatform> idle_threads_;
};

TEST_F(IdleThreadsTest, AThreadIsIdleOnceItsClockHasStoodStillForSomePolls) {
  for (int i = 0; i < kStillPolls; ++i) {
    EXPECT_FALSE(idle_threads_.IsIdle(2));
    PollThread(2);
  }
  EXPECT_FALSE(idle_threads_.IsIdle(1)) << "another thread";
  EXPECT_FALSE(idle_threads_.IsIdle(3));
  for (int i = 0; i < 1000; ++i) {
    PollThread(2);
    EXPECT_TRUE(idle_threads_.IsIdle(2));
  }
  ManualPlatform::RunFor(2, 1);
  PollThread(2);
  EXPECT_FALSE(idle_threads_.IsIdle(2));
  for (int i = 0; i < kStillPolls; ++i) PollThread(2);
  EXPECT_TRUE(idle_threads_.IsIdle(2));
  idle_threads_.Forget(2);
  EXPECT_FALSE(idle_threads_.IsIdle(2)) << "a registration begins awake";
  for (int i = 0; i < 10 * kStillPolls; ++i) {
    PollThread(2);
    idle_threads_.KeepBusy(2);
    EXPECT_FALSE(idle_threads_.IsIdle(2));
  }
  for (int i = 0; i < 2 * kStillPolls; ++i) idle_threads_.Note(3, 0, -1);
  EXPECT_FALSE(idle_threads_.IsIdle(3)) << "not known";
}

TEST_F(IdleThreadsTest, IdleThreadsArePolledOnceOtherThreadsHaveRunForSoLong) {
  EXPECT_EQ(Round(), 1);
  ManualPlatform::RunFor(3, kMaxNs);
  EXPECT_EQ(Round(), 1);
  ManualPlatform::RunFor(4, 1);
  EXPECT_EQ(Round(), 3) << "the two together";
  EXPECT_EQ(Round(), 1) << "that was then";
}

TEST_F(IdleThreadsTest, WhatTheCollectorAndBusyThreadsUseIsNoOtherThreads) {
  for (int i = 0; i < 100; ++i) {
    ManualPlatform::RunFor(kCollector, 10 * kMaxNs);
    ManualPlatform::RunFor(2, 20 * kMaxNs);
    EXPECT_EQ(Round([&] { PollThread(2); }), 1);
  }
}

TEST_F(IdleThreadsTest, WhatBusyThreadsUseAfterTheirPollsHidesNoThread) {
  ManualPlatform::RunFor(3, kMaxNs + 1);
  EXPECT_EQ(Round([&] {
              PollThread(2);
              ManualPlatform::RunFor(2, 100 * kMaxNs);
            }),
            3);
  ManualPlatform::RunFor(3, kMaxNs + 1);
  EXPECT_EQ(Round([&] { PollThread(2); }), 3);
}

TEST_F(IdleThreadsTest, WhatIdleThreadsUsedIsSeenOnce) {
  ManualPlatform::RunFor(2, kMaxNs + 1);
  int thread = 0;
  int polls = 0;
  idle_threads_.BeginRound();
  idle_threads_.EndRound(std::span(&thread, 1), kMaxNs, [&](int& /*thread*/) {
    PollThread(2);
    ++polls;
  });
  EXPECT_EQ(polls, 1);
  ManualPlatform::RunFor(2, kMaxNs + 1);
  EXPECT_EQ(Round(), 3) << "nor does it hide what comes later";
}

TEST_F(IdleThreadsTest, WhatAThreadUsedBeforeItWasAttachedIsNotItsOwn) {
  ManualPlatform::RunFor(2, kMaxNs + 1);
  EXPECT_EQ(Round([&] { PollThread(2, kMaxNs + 1); }), 3);
}

struct NoProcessClock : ManualPlatform {
  static std::int64_t ProcessCpuTimeNs() { return -1; }
};
TEST(IdleThreads, WithoutAClockOfTheProcessAllArePolled) {
  IdleThreads<NoProcessClock> idle;
  std::array<int, 2> polls{};
  for (int i = 0; i < 10; ++i) {
    idle.BeginRound();
    idle.EndRound(std::span<int>(polls), kMaxNs, [](int& thread) { ++thread; });
  }
  EXPECT_THAT(polls, ::testing::Each(10));
}

}  // namespace
}  // namespace strobe::internal
