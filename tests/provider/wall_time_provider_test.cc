#include "strobe/provider/wall_time_provider.h"

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_thread.h"
#include "strobe/testing/provider_conformance.h"

namespace strobe {
namespace {

using testing::ManualThread;

constexpr std::int64_t kWallPeriodNs = 100'000'000;

class WallTimeProviderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    thread_.Begin();
    provider_.Attach(thread_, state_, random_, now_ns_);
  }
  // Time passes and the collector polls.
  void Poll(std::int64_t elapsed_ns = kWallPeriodNs) {
    now_ns_ += elapsed_ns;
    thread_.Request(provider_.Poll(thread_, state_, now_ns_));
  }

  WallTimeProvider provider_{SamplingOptions{.wall_frequency_hz = 10}};
  WallTimeProvider::ThreadState state_;
  RandomSource random_{1};
  ManualThread thread_;
  std::int64_t now_ns_ = 5'000'000'000;
};

TEST_F(WallTimeProviderTest, IsOffByDefaultAndTheFrequencyIsThePeriod) {
  EXPECT_FALSE(WallTimeProvider(SamplingOptions{}).enabled());
  EXPECT_EQ(provider_.period_ns(), kWallPeriodNs);
  EXPECT_EQ(provider_.poll_period_ns(), kWallPeriodNs);
}

TEST_F(WallTimeProviderTest, IsPolledAtAnotherPeriodOnRequest) {
  provider_.SetPeriod(kWallPeriodNs / 10);
  provider_.Retime(thread_, state_, random_);
  EXPECT_EQ(provider_.poll_period_ns(), kWallPeriodNs / 10);
  EXPECT_EQ(provider_.period_ns(), kWallPeriodNs) << "its own";
}

TEST_F(WallTimeProviderTest, APollIsForTheTimeSinceTheLastOne) {
  Poll(30);
  EXPECT_EQ(thread_.requests(), 1);
  EXPECT_EQ(thread_.last_request(), 30) << "since the attachment";
  Poll(1000);
  EXPECT_EQ(thread_.last_request(), 1000);
  EXPECT_EQ(thread_.pending(), 1030);
  thread_.Capture();
  EXPECT_EQ(thread_.credited_weight(), 1030);
}

TEST_F(WallTimeProviderTest, TheResidualIsTheTimeSinceTheLastPoll) {
  Poll(1000);
  thread_.Capture();
  Poll(500);
  thread_.Capture();
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
