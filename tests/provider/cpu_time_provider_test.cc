#include "strobe/provider/cpu_time_provider.h"

#include <algorithm>
#include <array>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/manual_thread.h"
#include "strobe/testing/provider_conformance.h"

namespace strobe {
namespace {

using testing::ManualThread;

constexpr std::int64_t kPeriodNs = 10'000'000;

class CpuTimeProviderTest : public ::testing::Test {
 protected:
  void Attach(ManualThread& thread) {
    thread.Begin();
    provider_.Attach(thread, state_, random_, 0);
  }
  // Values of all that the thread was credited with, and of its residual.
  std::array<std::int64_t, 2> Detach(ManualThread& thread) {
    thread.End();
    const std::int64_t residual = provider_.Detach(thread, state_, 0);
    std::array<std::int64_t, 2> row{};
    provider_.AddWeight(thread.credited_weight(), state_, row);
    provider_.AddResidual(residual, row);
    return row;
  }

  CpuTimeProvider provider_{SamplingOptions{.cpu_frequency_hz = 100}};
  CpuTimeProvider::ThreadState state_;
  RandomSource random_{1};
};

TEST_F(CpuTimeProviderTest, TheFrequencyIsThePeriod) {
  EXPECT_EQ(provider_.period_ns(), kPeriodNs);
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
  const double slack = CpuTimeProvider::kDither * kPeriodNs;
  EXPECT_GE(static_cast<double>(least), kPeriodNs - slack - 1);
  EXPECT_LE(static_cast<double>(most), kPeriodNs + slack + 1);
  EXPECT_GT(static_cast<double>(most - least), 1.8 * slack) << "the whole range is used";
  EXPECT_NEAR(sum / 2000, kPeriodNs, slack / 10);
}

TEST_F(CpuTimeProviderTest, TheShortestPeriodStillHasATimer) {
  CpuTimeProvider provider({.cpu_frequency_hz = 1e9});
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
  const std::int64_t samples = thread.credited_weight();
  EXPECT_NEAR(static_cast<double>(samples), static_cast<double>(used_ns) / kPeriodNs,
              0.04 * static_cast<double>(samples));
  EXPECT_EQ(Detach(thread), (std::array<std::int64_t, 2>{samples, used_ns}));
}

TEST_F(CpuTimeProviderTest, AThreadThatEndsBeforeItsFirstExpiryIsAllResidual) {
  ManualThread thread;
  Attach(thread);
  thread.RunFor(thread.first_expiry_ns() - 1);
  EXPECT_EQ(Detach(thread), (std::array<std::int64_t, 2>{0, thread.CpuTimeNs()}));
}

// The clock of a thread that has ended without unregistering cannot be read.
TEST_F(CpuTimeProviderTest, AThreadThatIsGoneHasNoResidual) {
  ManualThread thread;
  thread.RunFor(2'000'000'000);
  Attach(thread);
  thread.RunFor(5 * kPeriodNs);
  const std::int64_t samples = thread.credited_weight();
  thread.is_gone = true;
  EXPECT_EQ(Detach(thread), (std::array<std::int64_t, 2>{samples, samples * state_.period_ns}));
}

TEST_F(CpuTimeProviderTest, WithATimerNoPollRequestsAnything) {
  ManualThread thread;
  Attach(thread);
  EXPECT_EQ(provider_.poll_period_ns(random_), 0);
  thread.RunFor(100 * kPeriodNs);
  thread.Apply(provider_.Poll(thread, state_, 0));
  EXPECT_EQ(thread.requests(), 0);
}

TEST_F(CpuTimeProviderTest, WhereTimersAreRefusedPollsRequestWholePeriods) {
  ManualThread thread;
  thread.refuses_timers = true;
  Attach(thread);
  EXPECT_GT(provider_.poll_period_ns(random_), 0);
  thread.Apply(provider_.Poll(thread, state_, 0));
  EXPECT_EQ(thread.requests(), 0) << "it has not run";
  // As with a timer, the first period ends at a uniform instant: within one period there is exactly
  // one end.
  thread.RunFor(state_.period_ns);
  thread.Apply(provider_.Poll(thread, state_, 0));
  EXPECT_EQ(thread.pending(), 1);
  thread.RunFor(5 * state_.period_ns);
  thread.Apply(provider_.Poll(thread, state_, 0));
  EXPECT_EQ(thread.last_request(), 5);
  EXPECT_EQ(thread.pending(), 6) << "what was asked for before was not served yet";
  thread.RunFor(state_.period_ns / 1000);
  thread.Capture();
  EXPECT_EQ(Detach(thread), (std::array<std::int64_t, 2>{6, thread.CpuTimeNs()}));
}

TEST_F(CpuTimeProviderTest, OnTheFallbackTheFirstPeriodEndsUniformlyToo) {
  int early = 0;
  for (int i = 0; i < 1000; ++i) {
    ManualThread thread;
    thread.refuses_timers = true;
    Attach(thread);
    thread.RunFor(state_.period_ns / 2);
    thread.Apply(provider_.Poll(thread, state_, 0));
    early += thread.pending() != 0 ? 1 : 0;
    Detach(thread);
  }
  EXPECT_NEAR(early, 500, 80);
}

TEST_F(CpuTimeProviderTest, PollsGoOnAsLongAsOneThreadNeedsThem) {
  std::array<ManualThread, 2> threads;
  std::array<CpuTimeProvider::ThreadState, 2> states;
  for (std::size_t i = 0; i < 2; ++i) {
    threads[i].refuses_timers = true;
    threads[i].Begin();
    provider_.Attach(threads[i], states[i], random_, 0);
  }
  provider_.Detach(threads[0], states[0], 0);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t poll_ns = provider_.poll_period_ns(random_);
    EXPECT_GE(poll_ns, kPeriodNs / 2);
    EXPECT_LE(poll_ns, kPeriodNs * 3 / 2);
  }
  provider_.Detach(threads[1], states[1], 0);
  EXPECT_EQ(provider_.poll_period_ns(random_), 0);
}

TEST_F(CpuTimeProviderTest, TheOptionTurnsTimersOff) {
  CpuTimeProvider provider({.use_timers = false});
  ManualThread thread;
  thread.Begin();
  provider.Attach(thread, state_, random_, 0);
  EXPECT_FALSE(thread.has_timer());
  thread.RunFor(2 * kPeriodNs);
  thread.Apply(provider.Poll(thread, state_, 0));
  EXPECT_TRUE(thread.request_pending());
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
