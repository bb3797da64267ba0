#include "strobe/provider/wall_time_provider.h"

#include <array>

#include "gtest/gtest.h"
#include "strobe/testing/manual_thread.h"
#include "strobe/testing/provider_conformance.h"

namespace strobe {
namespace {

using testing::ManualThread;

constexpr std::int64_t kPeriodNs = 100'000'000;

class WallTimeProviderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    thread_.Begin();
    provider_.Attach(thread_, state_, random_, now_ns_);
  }
  // Time passes and the collector polls.
  void Poll(std::int64_t elapsed_ns = kPeriodNs) {
    now_ns_ += elapsed_ns;
    thread_.Apply(provider_.Poll(thread_, state_, now_ns_));
  }

  WallTimeProvider provider_{SamplingOptions{.wall_frequency_hz = 10}};
  WallTimeProvider::ThreadState state_;
  RandomSource random_{1};
  ManualThread thread_;
  std::int64_t now_ns_ = 5'000'000'000;
};

TEST_F(WallTimeProviderTest, IsOffByDefaultAndTheFrequencyIsThePeriod) {
  EXPECT_FALSE(WallTimeProvider(SamplingOptions{}).enabled());
  EXPECT_EQ(provider_.period_ns(), kPeriodNs);
}

TEST_F(WallTimeProviderTest, PollsAreJitteredAroundThePeriod) {
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::int64_t poll_ns = provider_.poll_period_ns(random_);
    ASSERT_GE(poll_ns, kPeriodNs / 2);
    ASSERT_LE(poll_ns, kPeriodNs * 3 / 2);
    sum += static_cast<double>(poll_ns);
  }
  EXPECT_NEAR(sum / 10000, kPeriodNs, 0.02 * kPeriodNs);
}

TEST_F(WallTimeProviderTest, TheFirstPollInterruptsForTheTimeSinceTheAttachment) {
  Poll(30);
  EXPECT_EQ(thread_.requests(), 1);
  EXPECT_EQ(thread_.pending(), 30);
}

TEST_F(WallTimeProviderTest, AThreadThatHasNotRunIsLeftAloneAndItsStackGrows) {
  Poll(30);
  thread_.Capture();
  for (int i = 0; i < 100; ++i) Poll(1000);
  EXPECT_EQ(thread_.requests(), 1);
  EXPECT_EQ(thread_.extended(), 100 * 1000);
  EXPECT_EQ(thread_.credited_weight(), 30 + 100 * 1000);
}

TEST_F(WallTimeProviderTest, TheWayBackFromTheHandlerIsNoRunning) {
  thread_.return_cost_ns = WallTimeProvider::kReturnCostNs;
  Poll();
  thread_.Capture();
  for (int i = 0; i < 10; ++i) Poll();
  EXPECT_EQ(thread_.requests(), 1);
  EXPECT_EQ(thread_.extended(), 10 * kPeriodNs);
}

TEST_F(WallTimeProviderTest, TheReturnCostIsAcceptedOnceACapture) {
  thread_.return_cost_ns = 1000;
  Poll();
  thread_.Capture();
  Poll();
  EXPECT_EQ(thread_.requests(), 1);
  thread_.RunFor(1000);  // as little, but after it had gone back to sleep
  Poll();
  EXPECT_EQ(thread_.requests(), 2) << "the thread ran: its stack may be another";
}

TEST_F(WallTimeProviderTest, AThreadThatRanLongerThanTheWayBackIsAskedAgain) {
  thread_.return_cost_ns = WallTimeProvider::kReturnCostNs + 1;
  Poll();
  thread_.Capture();
  Poll();
  EXPECT_EQ(thread_.requests(), 2);
  thread_.Capture();
  thread_.return_cost_ns = 0;
  Poll();
  EXPECT_EQ(thread_.requests(), 3);
}

TEST_F(WallTimeProviderTest, AThreadThatRanIsInterruptedOnceForIt) {
  Poll();
  thread_.Capture();
  Poll();
  for (int i = 0; i < 5; ++i) {
    const int before = thread_.requests();
    thread_.RunFor(1);
    Poll();
    EXPECT_EQ(thread_.requests(), before + 1);
    thread_.Capture();
    for (int k = 0; k < 5; ++k) Poll();
    EXPECT_EQ(thread_.requests(), before + 1);
  }
}

TEST_F(WallTimeProviderTest, RequestsThatAreNotServedAddUp) {
  Poll(10);
  Poll(20);
  Poll(30);
  EXPECT_EQ(thread_.pending(), 60);
  thread_.Capture();
  EXPECT_EQ(thread_.credited_weight(), 60);
}

TEST_F(WallTimeProviderTest, TheResidualIsTheTimeSinceTheLastPoll) {
  Poll(1000);
  thread_.Capture();
  Poll(500);
  EXPECT_EQ(provider_.Detach(thread_, state_, now_ns_ + 7), 7);
}

TEST_F(WallTimeProviderTest, WhatWasAskedForInVainIsResidual) {
  Poll(1000);
  EXPECT_EQ(provider_.Detach(thread_, state_, now_ns_ + 7), 1007);
}

TEST_F(WallTimeProviderTest, TwoPollsAtOneInstantAskOnce) {
  Poll(1000);
  Poll(0);
  EXPECT_EQ(thread_.requests(), 1);
}

}  // namespace

namespace testing {

struct WallTimeHarness {
  using Provider = WallTimeProvider;
  static SamplingOptions Enabled() { return {.wall_frequency_hz = 10}; }
  static SamplingOptions Disabled() { return {.wall_frequency_hz = 0}; }
  static constexpr bool kHasResidual = true;
};
INSTANTIATE_TYPED_TEST_SUITE_P(WallTime, ProviderConformance, WallTimeHarness);

}  // namespace testing
}  // namespace strobe
