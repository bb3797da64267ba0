#include "strobe/provider/cpu_time_provider.h"

#include <algorithm>
#include <array>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_thread.h"
#include "strobe/testing/provider_conformance.h"

namespace strobe {
namespace {

using testing::ManualThread;

constexpr std::int64_t kCpuPeriodNs = 10'000'000;

class CpuTimeProviderTest : public ::testing::Test {
 protected:
  void Attach(ManualThread& thread) {
    thread.Begin();
    provider_.Attach(thread, state_, random_, 0);
  }
  // All that the thread was credited with, and its residual.
  std::int64_t Detach(ManualThread& thread) {
    thread.End();
    return thread.credited_weight() + provider_.Detach(thread, state_, 0).value_or(0);
  }

  CpuTimeProvider provider_{
      SamplingOptions{.cpu_frequency_hz = 100, .trigger = SampleTrigger::kTimers}};
  CpuTimeProvider::ThreadState state_;
  RandomSource random_{1};
};

TEST_F(CpuTimeProviderTest, TheFrequencyIsThePeriod) {
  EXPECT_EQ(provider_.period_ns(), kCpuPeriodNs);
  EXPECT_EQ(CpuTimeProvider({.cpu_frequency_hz = 10000}).period_ns(), 100'000);
  EXPECT_FALSE(CpuTimeProvider({.cpu_frequency_hz = 0}).enabled());
}

// In tenths of its own thread's period, first expiries fill every tenth about equally, and none is
// outside. Over 2,000 threads a tenth has 200, give or take 13 a standard deviation; the seed is
// fixed.
TEST_F(CpuTimeProviderTest, FirstExpiryIsUniformInThePeriod) {
  std::array<int, 10> tenths{};
  for (int i = 0; i < 2000; ++i) {
    ManualThread thread;
    Attach(thread);
    ASSERT_GT(thread.first_expiry_ns(), 0);
    ASSERT_LE(thread.first_expiry_ns(), thread.timer_period_ns());
    ++tenths[static_cast<std::size_t>(10 * (thread.first_expiry_ns() - 1) /
                                      thread.timer_period_ns())];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 200, 80);
}

TEST_F(CpuTimeProviderTest, PeriodsAreDitheredWithinTheirBoundsAroundTheAskedOne) {
  double sum = 0;
  std::int64_t least = INT64_MAX;
  std::int64_t most = 0;
  for (int i = 0; i < 2000; ++i) {
    ManualThread thread;
    Attach(thread);
    least = std::min(least, thread.timer_period_ns());
    most = std::max(most, thread.timer_period_ns());
    sum += static_cast<double>(thread.timer_period_ns());
  }
  const double slack = CpuTimeProvider::kDither * kCpuPeriodNs;
  EXPECT_GE(static_cast<double>(least), kCpuPeriodNs - slack - 1);
  EXPECT_LE(static_cast<double>(most), kCpuPeriodNs + slack + 1);
  EXPECT_GT(static_cast<double>(most - least), 1.8 * slack) << "the whole range is used";
  EXPECT_NEAR(sum / 2000, kCpuPeriodNs, slack / 10);
}

TEST_F(CpuTimeProviderTest, ATimerGetsAnotherPeriodAndTheAccountStays) {
  ManualThread thread;
  Attach(thread);
  thread.RunFor(95'000'000);
  provider_.SetPeriod(kCpuPeriodNs / 10);
  EXPECT_EQ(provider_.period_ns(), kCpuPeriodNs) << "its own";
  provider_.Retime(thread, state_, random_);
  EXPECT_NEAR(static_cast<double>(thread.timer_period_ns()), kCpuPeriodNs / 10.0,
              CpuTimeProvider::kDither * kCpuPeriodNs / 10 + 1);
  const int captures = thread.captures();
  for (int i = 0; i < 100; ++i) thread.RunFor(1'000'000);
  EXPECT_NEAR(thread.captures() - captures, 100, 5);
  provider_.SetPeriod(kCpuPeriodNs);
  provider_.Retime(thread, state_, random_);
  EXPECT_GT(thread.timer_period_ns(), kCpuPeriodNs / 2);
  thread.RunFor(5'000'000);
  EXPECT_EQ(Detach(thread), 200'000'000);
}

TEST(CpuTimeProviderAtInstants, HasNoTimerToRetime) {
  CpuTimeProvider provider({.trigger = SampleTrigger::kRandom});
  CpuTimeProvider::ThreadState state;
  RandomSource random(1);
  ManualThread thread;
  thread.Begin();
  provider.Attach(thread, state, random, 0);
  provider.SetPeriod(kCpuPeriodNs / 10);
  provider.Retime(thread, state, random);
  EXPECT_FALSE(thread.has_any_timer());
  EXPECT_TRUE(provider.IsAtInstants(state));
}

TEST_F(CpuTimeProviderTest, TheShortestPeriodStillHasATimer) {
  CpuTimeProvider provider({.cpu_frequency_hz = 1e9, .trigger = SampleTrigger::kTimers});
  for (int i = 0; i < 100; ++i) {
    ManualThread thread;
    thread.Begin();
    provider.Attach(thread, state_, random_, 0);
    EXPECT_TRUE(thread.has_timer()) << "zero is no duration for a timer";
  }
}

TEST_F(CpuTimeProviderTest, TimerSamplesAndResidualAreTheCpuClock) {
  ManualThread thread;
  thread.RunFor(123'456'789);
  Attach(thread);
  for (int i = 0; i < 1000; ++i) thread.RunFor(i * 7919);
  const std::int64_t used_ns = thread.CpuTimeNs() - thread.attach_cpu_ns();
  EXPECT_NEAR(static_cast<double>(thread.credited_weight()), static_cast<double>(used_ns),
              kCpuPeriodNs);
  EXPECT_EQ(Detach(thread), used_ns);
}

TEST_F(CpuTimeProviderTest, AThreadThatEndsBeforeItsFirstExpiryIsAllResidual) {
  ManualThread thread;
  Attach(thread);
  thread.RunFor(thread.first_expiry_ns() - 1);
  EXPECT_EQ(thread.credited_weight(), 0);
  EXPECT_EQ(Detach(thread), thread.CpuTimeNs());
}

// The clock of a thread that has ended without unregistering cannot be read.
TEST_F(CpuTimeProviderTest, AThreadThatIsGoneHasNoResidual) {
  ManualThread thread;
  thread.RunFor(2'000'000'000);
  Attach(thread);
  thread.RunFor(5 * kCpuPeriodNs);
  const std::int64_t credited_ns = thread.credited_weight();
  EXPECT_GT(credited_ns, 0);
  thread.is_gone = true;
  EXPECT_EQ(Detach(thread), credited_ns);
}

TEST_F(CpuTimeProviderTest, WhereTimersAreRefusedAThreadIsSampledAtInstants) {
  ManualThread thread;
  Attach(thread);
  EXPECT_FALSE(provider_.IsAtInstants(state_));
  Detach(thread);
  thread.refuses_timers = true;
  Attach(thread);
  EXPECT_TRUE(provider_.IsAtInstants(state_));
}

TEST_F(CpuTimeProviderTest, ARandomTimerServesAThreadUnlessItIsRefused) {
  CpuTimeProvider provider({.trigger = SampleTrigger::kPerf});
  for (const bool is_refused : {false, true}) {
    ManualThread thread;
    thread.refuses_random_timers = is_refused;
    thread.Begin();
    provider.Attach(thread, state_, random_, 0);
    EXPECT_EQ(thread.has_random_timer(), !is_refused);
    EXPECT_EQ(provider.IsAtInstants(state_), is_refused);
    EXPECT_FALSE(thread.has_timer());
    if (is_refused) continue;
    EXPECT_EQ(thread.timer_period_ns(), kCpuPeriodNs);
  }
}

TEST_F(CpuTimeProviderTest, AnOptionGivesEveryThreadTheSameTrigger) {
  for (const auto trigger : {SampleTrigger::kTimers, SampleTrigger::kRandom}) {
    CpuTimeProvider provider({.trigger = trigger});
    ManualThread thread;
    thread.Begin();
    provider.Attach(thread, state_, random_, 0);
    for (std::int64_t second = 1; second < 10; ++second) {
      thread.RunFor(second < 5 ? 1'000'000'000 : 0);
      provider.Review(thread, state_, random_, {.now_ns = second * 1'000'000'000});
      EXPECT_EQ(thread.has_timer(), trigger == SampleTrigger::kTimers);
      EXPECT_EQ(provider.IsAtInstants(state_), trigger == SampleTrigger::kRandom);
    }
  }
}

// Each expiry would be a signal that a sigwait of the thread returns.
TEST_F(CpuTimeProviderTest, AThreadHasNoTimerWhileItBlocksTheSignal) {
  for (const auto trigger : {SampleTrigger::kTimers, SampleTrigger::kPerf, SampleTrigger::kAuto}) {
    CpuTimeProvider provider({.trigger = trigger});
    ManualThread thread;
    thread.refuses_random_timers = false;
    thread.Begin();
    provider.Attach(thread, state_, random_, 0);
    std::int64_t second = 0;
    const auto review = [&] {
      thread.RunFor(1'000'000'000);
      provider.Review(thread, state_, random_, {.now_ns = ++second * 1'000'000'000});
    };
    for (int i = 0; i < 3; ++i) review();
    ASSERT_TRUE(thread.has_any_timer());
    thread.blocks_signal = true;
    for (int i = 0; i < 3; ++i) {
      review();
      EXPECT_FALSE(thread.has_any_timer());
      EXPECT_TRUE(provider.IsAtInstants(state_)) << "which look at the mask each time";
    }
    thread.blocks_signal = false;
    for (int i = 0; i < 3; ++i) review();
    EXPECT_TRUE(thread.has_any_timer()) << "as before";
  }
}

// A thread with reviews a second apart.
class AutomaticTrigger : public ::testing::Test {
 protected:
  void SetUp() override {
    thread_.Begin();
    provider_.Attach(thread_, state_, random_, 0);
  }
  // A second in which the thread works for `cpu_ns`, with that many waits.
  void Second(std::int64_t cpu_ns, std::int64_t waits) {
    thread_.RunFor(cpu_ns);
    thread_.wait_count += waits;
    now_ns_ += 1'000'000'000;
    provider_.Review(thread_, state_, random_,
                     {.now_ns = now_ns_, .affordable_rate_hz = affordable_rate_hz_});
    EXPECT_NE(thread_.has_any_timer(), provider_.IsAtInstants(state_)) << "one of both";
  }

  ManualThread thread_;
  CpuTimeProvider provider_{SamplingOptions()};
  CpuTimeProvider::ThreadState state_;
  RandomSource random_{1};
  std::int64_t now_ns_ = 0;
  double affordable_rate_hz_ = 20;
};

// A thread that soon ends is sampled at the asked rate.
TEST_F(AutomaticTrigger, AThreadBeginsWithATimer) {
  EXPECT_TRUE(thread_.has_timer());
  thread_.RunFor(2 * kCpuPeriodNs);
  EXPECT_GT(thread_.captures(), 0) << "before any review";
}

TEST_F(AutomaticTrigger, AThreadThatComputesForLongKeepsItsTimer) {
  Second(1'000'000'000, 1);
  EXPECT_TRUE(thread_.has_timer());
  Second(1'000'000'000, 3);
  EXPECT_TRUE(thread_.has_timer());
}

// A lock, a page of a file: what a thread waits for at its begin says nothing of its ways.
TEST_F(AutomaticTrigger, AFewWaitsAtTheBeginAreNoReasonToLoseTheTimer) {
  Second(50'000'000, 2);
  EXPECT_TRUE(thread_.has_timer());
  Second(1'000'000'000, 1);
  EXPECT_TRUE(thread_.has_timer());
}

TEST_F(AutomaticTrigger, AThreadWhoseWaitsAreUnknownIsAtInstantsHoweverLongItLives) {
  thread_.wait_count = -1;
  for (int i = 0; i < 10; ++i) {
    Second(1'000'000'000, 0);
    EXPECT_FALSE(thread_.has_timer());
  }
  Second(20'000'000, 0);
  EXPECT_FALSE(thread_.has_timer());
}

// On a busy machine.
TEST_F(AutomaticTrigger, AThreadThatNeverWaitsKeepsItsTimerHoweverSeldomItRuns) {
  for (int i = 0; i < 5; ++i) {
    Second(20'000'000, 0);
    EXPECT_TRUE(thread_.has_timer());
  }
  Second(20'000'000, 1);
  EXPECT_FALSE(thread_.has_timer());
}

TEST_F(AutomaticTrigger, AThreadThatWorksForShortTimesIsAtInstantsFromTheFirstReviewOn) {
  for (int i = 0; i < 5; ++i) {
    Second(500'000'000, 250);
    EXPECT_FALSE(thread_.has_timer());
  }
}

// 2,000 waits a second at 2.3 µs are 0.9 % of half a second; 500 are 0.2 %.
TEST_F(AutomaticTrigger, ARandomTimerServesAThreadThatTheBudgetPaysItFor) {
  thread_.refuses_random_timers = false;
  for (int i = 0; i < 3; ++i) {
    for (int second = 0; second < 2; ++second) Second(500'000'000, 2000);
    EXPECT_FALSE(thread_.has_any_timer());
    Second(500'000'000, 500);
    EXPECT_TRUE(thread_.has_random_timer());
    for (int second = 0; second < 5; ++second) Second(0, 0);
    EXPECT_TRUE(thread_.has_random_timer()) << "it costs nothing while the thread is idle";
    Second(1'000'000'000, 1);
    EXPECT_TRUE(thread_.has_timer()) << "the cheaper one";
    EXPECT_FALSE(thread_.has_random_timer());
  }
}

// The signal of an expiry may be lost.
TEST_F(AutomaticTrigger, ARandomTimerThatStandsStillIsStartedAnew) {
  thread_.refuses_random_timers = false;
  for (int second = 0; second < 2; ++second) Second(50'000'000, 10);
  ASSERT_TRUE(thread_.has_random_timer());
  const int starts = thread_.random_timer_starts();
  for (int second = 0; second < 10; ++second) {
    thread_.ExpireRandomTimer();
    Second(50'000'000, 10);
  }
  EXPECT_EQ(thread_.random_timer_starts(), starts) << "it expires";
  for (int second = 0; second < 3; ++second) Second(50'000'000, 10);
  EXPECT_EQ(thread_.random_timer_starts(), starts) << "may be chance";
  for (int second = 0; second < 3; ++second) Second(50'000'000, 10);
  EXPECT_EQ(thread_.random_timer_starts(), starts + 1);
  EXPECT_TRUE(thread_.has_random_timer());
}

TEST_F(AutomaticTrigger, WhereRandomTimersAreRefusedInstantsServe) {
  for (int i = 0; i < 3; ++i) Second(500'000'000, 100);
  EXPECT_FALSE(thread_.has_any_timer());
  thread_.refuses_random_timers = false;
  for (int i = 0; i < 3; ++i) Second(500'000'000, 100);
  EXPECT_FALSE(thread_.has_any_timer()) << "the system is not asked for each thread";
}

TEST_F(AutomaticTrigger, AThreadThatChangesItsWaysIsSampledAccordingly) {
  for (int i = 0; i < 3; ++i) {
    for (int second = 0; second < 2; ++second) Second(1'000'000'000, 0);
    EXPECT_TRUE(thread_.has_timer());
    Second(500'000'000, 250);
    EXPECT_FALSE(thread_.has_timer());
  }
}

TEST_F(AutomaticTrigger, AnIdleThreadHasATimerUntilItHasWorkedForAPeriod) {
  for (int i = 0; i < 2; ++i) Second(20'000'000, 10);
  EXPECT_FALSE(thread_.has_timer());
  Second(0, 0);
  EXPECT_FALSE(thread_.has_timer());
  Second(0, 0);
  EXPECT_TRUE(thread_.has_timer());
  Second(100'000, 1);
  EXPECT_TRUE(thread_.has_timer()) << "a wake-up says nothing";
  for (int i = 0; i < 100; ++i) Second(100'000, 1);
  EXPECT_FALSE(thread_.has_timer()) << "many say something";
}

TEST_F(AutomaticTrigger, ARateAboveTheTicksNeedsInstantsIfTheBudgetPaysForThem) {
  CpuTimeProvider provider({.cpu_frequency_hz = 1000});
  const auto trigger_of = [&](double affordable_rate_hz) {
    ManualThread thread;
    thread.Begin();
    provider.Attach(thread, state_, random_, 0);
    for (int second = 0; second < 3; ++second) {
      thread.RunFor(1'000'000'000);
      provider.Review(thread, state_, random_,
                      {.now_ns = second, .affordable_rate_hz = affordable_rate_hz});
    }
    return provider.IsAtInstants(state_);
  };
  EXPECT_FALSE(trigger_of(20));
  EXPECT_TRUE(trigger_of(5000));
}

// A timer that starts anew does not know how far its thread was into a period: the mean of the
// samples must be right all the same.
TEST_F(AutomaticTrigger, ChangesOfTheTriggerLoseNoSamplesInTheMean) {
  constexpr int kTimes = 2000;
  CpuTimeProvider provider({.trigger = SampleTrigger::kTimers});
  ManualThread thread;
  std::int64_t credited_ns = 0;
  for (int i = 0; i < kTimes; ++i) {
    thread.Begin();
    provider.Attach(thread, state_, random_, 0);
    thread.RunFor(7'000'000);
    credited_ns += thread.credited_weight();
    thread.End();
  }
  // 0.7 of a period each time: 1,400 samples, give or take 20 a standard deviation.
  EXPECT_NEAR(static_cast<double>(credited_ns), 7e6 * kTimes, 4 * 20 * 10e6);
}

}  // namespace

namespace testing {

struct CpuTimeHarness {
  using Provider = CpuTimeProvider;
  static SamplingOptions Enabled() { return {.cpu_frequency_hz = 100}; }
  static SamplingOptions Disabled() { return {.cpu_frequency_hz = 0}; }
  static constexpr bool kHasResidual = true;
};
INSTANTIATE_TYPED_TEST_SUITE_P(CpuTime, ProviderConformance, CpuTimeHarness);

}  // namespace testing
}  // namespace strobe
