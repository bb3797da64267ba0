#include "strobe/runtime/thread_poller.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session_fixture.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::SumByThread;
using testing::SumOfPseudo;

// Polled by a session, as by its collector.
class ThreadPollerTest : public SessionTest {};

TEST_F(ThreadPollerTest, AThreadThatWaitsIsInterruptedOnceAndItsStackGrows) {
  Slot* const slot = Register(1, "waiter");
  Begin({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
  Run(slot, 5);
  int interruptions = 0;
  for (int i = 0; i < 50; ++i) {
    ManualClock::Advance(200 * kMs);
    session_->Poll(Now());
    interruptions += ManualPlatform::DeliverAll(0x400000);
  }
  EXPECT_EQ(interruptions, 1);
  const Profile profile = Finish();
  EXPECT_THAT(profile.value_types, ElementsAre(ValueType{"wall", "nanoseconds"}))
      << "the CPU provider is off";
  EXPECT_EQ(SumByThread(profile, 0)["waiter"], 50 * 200 * kMs + 5);
  EXPECT_LE(SumOfPseudo(profile, PseudoFrame::kResidual, 0), 200 * kMs);
}

TEST_F(ThreadPollerTest, WhereTimersAreRefusedPollsTakeTheirPlace) {
  ManualPlatform::With([](auto& state) { state.refuses_timers = true; });
  Slot* const slot = Register(1, "thread");
  Begin({});
  std::int64_t next_ns = session_->Poll(Now());
  ASSERT_LT(next_ns, INT64_MAX);
  for (int i = 0; i < 1000; ++i) {
    Run(slot, kMs);
    if (Now() >= next_ns) next_ns = session_->Poll(Now());
    ManualPlatform::DeliverAll(0x400000);
  }
  Stats stats;
  registry_.AddTo(stats);
  EXPECT_EQ(stats.threads_on_fallback, 1u);
  const Profile profile = Finish();
  EXPECT_EQ(SumByThread(profile, kCpu)["thread"], 1000 * kMs);
  EXPECT_GE(SumByThread(profile, kSamples)["thread"], 90);
  EXPECT_LE(SumByThread(profile, kSamples)["thread"], 104);
}

TEST_F(ThreadPollerTest, ThreadsThatSleepCostNothingUntilOneRuns) {
  ManualPlatform::With([](auto& state) { state.refuses_timers = true; });
  std::vector<Slot*> idle;
  for (std::uint64_t id = 2; id < 100; ++id) idle.push_back(Register(id, "idle"));
  Slot* const runner = Register(1, "runner");
  Begin({});
  const auto pass = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Run(runner, 20 * kMs);
      session_->Poll(Now());
      ManualPlatform::DeliverAll(0x400000);
    }
  };
  pass(50);
  ManualPlatform::With([](auto& state) { state.clock_reads = 0; });
  pass(50);
  EXPECT_LE(ManualPlatform::With([](auto& state) { return state.clock_reads; }), 4 * 50)
      << "the runner's, twice the collector's, one idle thread's";
  EXPECT_EQ(ManualPlatform::With([](auto& state) { return state.interruptions.size(); }), 0u);

  // A thread that wakes up is seen at the next poll.
  Run(idle[40], 35 * kMs);
  session_->Poll(Now());
  const auto interruptions = ManualPlatform::With([](auto& state) { return state.interruptions; });
  ASSERT_EQ(interruptions.size(), 1u);
  EXPECT_EQ(interruptions[0].thread_id, idle[40]->channel->thread_id);
  ManualPlatform::DeliverAll(0x400000);

  const Profile profile = Finish();
  EXPECT_EQ(SumByThread(profile, kCpu), (Sums{{"runner", 100 * 20 * kMs}, {"idle", 35 * kMs}}));
  EXPECT_GE(SumByThread(profile, kSamples)["idle"], 3);
}

TEST_F(ThreadPollerTest, WithTimersNoThreadIsPolled) {
  Register(1, "thread");
  Begin({});
  EXPECT_EQ(session_->Poll(Now()), INT64_MAX);
}

}  // namespace
}  // namespace strobe::internal
