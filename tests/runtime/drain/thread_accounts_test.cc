#include "strobe/runtime/drain/thread_accounts.h"

#include <cstdint>
#include <utility>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualTraits;

class ThreadAccountsTest : public ::testing::Test {
 protected:
  using Thread = RegisteredThread<ManualTraits>;
  using Row = ThreadAccounts<ManualTraits>::Row;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ASSERT_TRUE(registry_.Open().ok());
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
  }
  void TearDown() override {
    accounts_.Detach(*thread_);
    thread_->needs_finish = false;  // the account is settled: the thread is used again
    registry_.Unregister(thread_);
  }

  ThreadRegistry<ManualTraits> registry_{4, 4096};
  CollectorCounters counters_;
  ThreadAccounts<ManualTraits> accounts_{
      {.cpu_frequency_hz = 100, .wall_frequency_hz = 10, .trigger = SampleTrigger::kTimers},
      registry_,
      counters_,
      23};
  Thread* thread_ = nullptr;
};

TEST_F(ThreadAccountsTest, AnExpiryStandsForTheThreadsOwnPeriod) {
  accounts_.Attach(*thread_);
  EXPECT_EQ(thread_->channel->timer_period_ns,
            ManualPlatform::With([](auto& state) { return state.timers.at(1).period_ns; }));
  EXPECT_EQ(accounts_.first_enabled(), 0u);
  EXPECT_EQ(accounts_.period_ns(0), 10'000'000);
}

TEST_F(ThreadAccountsTest, WhatWasCreditedAndNotReceivedIsOutstanding) {
  accounts_.Attach(*thread_);
  const std::int64_t period_ns = thread_->channel->timer_period_ns;
  ManualPlatform::RunFor(1, 5 * period_ns);
  thread_->channel->cells[0].credited = 4 * period_ns;
  thread_->accounts[0].Receive(3 * period_ns);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  const Row lost = accounts_.MissingOf(*thread_);
  const Row residual = accounts_.ResidualOf(*thread_);
  EXPECT_EQ(lost, (Row{0, period_ns}));
  EXPECT_EQ(residual, (Row{0, period_ns}));
  EXPECT_FALSE(accounts_.Detach(*thread_).has_value()) << "it is detached";
}

TEST_F(ThreadAccountsTest, AResidualIsTheDifferenceBetweenTheClockAndTheRows) {
  accounts_.Attach(*thread_);
  const std::int64_t period_ns = thread_->channel->timer_period_ns;
  ManualPlatform::RunFor(1, period_ns / 4);
  thread_->accounts[0].Receive(period_ns);
  EXPECT_EQ(accounts_.ResidualOf(*thread_), (Row{0, period_ns / 4 - period_ns}));
  ManualPlatform::RunFor(1, period_ns);
  EXPECT_EQ(accounts_.ResidualOf(*thread_), (Row{0, period_ns / 4}));
}

TEST_F(ThreadAccountsTest, WhatIsSettledIsNoResidualAnyMore) {
  accounts_.Attach(*thread_);
  const std::int64_t period_ns = thread_->channel->timer_period_ns;
  ManualPlatform::RunFor(1, 7);
  ManualClock::Advance(50);
  EXPECT_EQ(accounts_.ResidualOf(*thread_), (Row{0, 7, 50, 43}));
  accounts_.NoteSettled(*thread_, accounts_.ResidualOf(*thread_));
  EXPECT_EQ(accounts_.ResidualOf(*thread_), Row{});
  ManualPlatform::RunFor(1, period_ns);
  thread_->channel->cells[0].credited = period_ns;
  thread_->accounts[0].Receive(period_ns);
  EXPECT_EQ(accounts_.ResidualOf(*thread_), Row{}) << "the sample stands for that time";
  ManualPlatform::RunFor(1, 5);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  EXPECT_EQ(accounts_.ResidualOf(*thread_), (Row{0, 5}));
}

TEST_F(ThreadAccountsTest, EachPartOfALifeHasTheCpuTimeSinceTheOneBefore) {
  const std::int64_t begin_ns = ManualClock().MonotonicNs();
  ManualPlatform::RunFor(1, 1000);
  ManualClock::Advance(5);
  accounts_.Attach(*thread_);
  const auto settle = [&] {
    const LifePart part = accounts_.LifeOf(*thread_, accounts_.ReadClocks(*thread_));
    accounts_.NoteSettled(*thread_, part);
    EXPECT_EQ(part.begin_ns, begin_ns) << "that of the registration";
    return std::pair(part.cpu_ns, part.samples);
  };
  ManualPlatform::RunFor(1, 30);
  thread_->life_samples = 2;
  EXPECT_EQ(settle(), std::pair(std::int64_t{30}, std::uint64_t{2}));
  EXPECT_EQ(settle(), std::pair(std::int64_t{0}, std::uint64_t{0}));
  ManualPlatform::RunFor(1, 4);
  thread_->is_ending = true;
  ManualClock::Advance(50);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  ManualPlatform::RunFor(1, 100);
  EXPECT_EQ(accounts_.LifeOf(*thread_, accounts_.ReadClocks(*thread_)).end_ns, begin_ns + 55);
  EXPECT_EQ(settle(), std::pair(std::int64_t{4}, std::uint64_t{0}));
}

TEST_F(ThreadAccountsTest, TheCpuTimeOfALifeIsUnknownIfTheClockIs) {
  accounts_.Attach(*thread_);
  ManualPlatform::RunFor(1, 30);
  accounts_.NoteSettled(*thread_, accounts_.LifeOf(*thread_, accounts_.ReadClocks(*thread_)));
  ManualPlatform::RunFor(1, -20);
  EXPECT_EQ(accounts_.LifeOf(*thread_, accounts_.ReadClocks(*thread_)).cpu_ns, -1);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  EXPECT_EQ(thread_->life_cpu_ns, -1);
  EXPECT_EQ(thread_->end_ns, 0) << "the session has ended, the registration has not";
}

// All accounts of a thread are settled by one reading of each clock.
TEST_F(ThreadAccountsTest, TheOffCpuTimeIsTheWallTimeWithoutTheCpuTime) {
  accounts_.Attach(*thread_);
  Row sum{};
  const auto settle = [&] {
    const Row residual = accounts_.ResidualOf(*thread_);
    accounts_.NoteSettled(*thread_, residual);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += residual[i];
  };
  for (int i = 0; i < 20; ++i) {
    ManualPlatform::RunFor(1, 300 + i);
    ManualClock::Advance(1000);
    if (i % 3 == 0) thread_->accounts[2].Receive(500);  // a poll found it waiting
    settle();
  }
  ManualClock::Advance(77);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  EXPECT_EQ(accounts_.MissingOf(*thread_), Row{});
  settle();
  EXPECT_EQ(sum[2], 20'077);
  EXPECT_EQ(sum[3] + 7 * 500, sum[2] - sum[1]);
}

TEST_F(ThreadAccountsTest, AThreadInTheMiddleOfACaptureIsPostponed) {
  thread_->channel->is_capturing = true;
  accounts_.Attach(*thread_);
  EXPECT_FALSE(thread_->is_attached);
  EXPECT_TRUE(accounts_.TakePostponed());
  EXPECT_FALSE(accounts_.TakePostponed());
  thread_->channel->is_capturing = false;
  accounts_.End();
  accounts_.Attach(*thread_);
  EXPECT_FALSE(thread_->is_attached) << "the session has ended";
}

struct PolledTraits : ManualTraits {
  using Providers = ProviderList<testing::ArchetypePolledProvider>;
};

class ThreadAccountsOfAPolledProvider : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ASSERT_TRUE(registry_.Open().ok());
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    accounts_.Attach(*thread_);
  }

  ThreadRegistry<PolledTraits> registry_{4, 4096};
  CollectorCounters counters_;
  ThreadAccounts<PolledTraits> accounts_{{}, registry_, counters_, 23};
  RegisteredThread<PolledTraits>* thread_ = nullptr;
};

// No clock knows of such a request: it must not vanish with the thread.
TEST_F(ThreadAccountsOfAPolledProvider, WhatWasRequestedAndNotServedIsOutstanding) {
  EXPECT_EQ(accounts_.period_ns(0), 0);
  thread_->channel->cells[0].requested = 5;
  thread_->channel->cells[0].credited = 4;
  thread_->accounts[0].Receive(3);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  const auto lost = accounts_.MissingOf(*thread_);
  const auto residual = accounts_.ResidualOf(*thread_);
  EXPECT_EQ(lost[0], 6);
  EXPECT_EQ(residual[0], 0);
  thread_->needs_finish = false;  // the account is settled: the thread is used again
  registry_.Unregister(thread_);
}

TEST_F(ThreadAccountsOfAPolledProvider, WhatGotNoRecordIsTakenOnce) {
  thread_->channel->cells[0].lost = 5;
  const auto lost = accounts_.LostOf(*thread_);
  EXPECT_EQ(lost[0], 5);
  thread_->channel->cells[0].lost += 2;  // a capture, meanwhile
  accounts_.NoteLost(*thread_, lost);
  EXPECT_EQ(accounts_.LostOf(*thread_)[0], 2);
  ASSERT_TRUE(accounts_.Detach(*thread_).has_value());
  EXPECT_EQ(accounts_.MissingOf(*thread_)[0], 0);
  thread_->needs_finish = false;
  registry_.Unregister(thread_);
}

TEST_F(ThreadAccountsTest, WhatGotNoRecordIsInTheResidualOfAClock) {
  accounts_.Attach(*thread_);
  thread_->channel->cells[0].lost = 5;
  EXPECT_EQ(accounts_.LostOf(*thread_), (ThreadAccounts<ManualTraits>::Row{}));
}

}  // namespace
}  // namespace strobe::internal
