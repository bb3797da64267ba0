#include "strobe/core/share_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace strobe {
namespace {

TEST(ShareError, OfManySamplesIsThatOfAProportion) {
  EXPECT_NEAR(StandardErrorOfShare(0.3, 40'000), std::sqrt(0.3 * 0.7 / 40'000), 1e-6);
  EXPECT_NEAR(StandardErrorOfShare(0.3, 400), 0.023, 0.0005);
}

TEST(ShareError, WhatWasNeverSampledMayStillBeThere) {
  EXPECT_GT(StandardErrorOfShare(0, 100), 0.005);
  EXPECT_LT(StandardErrorOfShare(0, 100), 0.02);
  EXPECT_NEAR(StandardErrorOfShare(0, 100), StandardErrorOfShare(1, 100), 1e-12);
}

TEST(ShareError, IsUnknownWithoutSamples) {
  EXPECT_TRUE(std::isnan(StandardErrorOfShare(0.5, 0)));
  EXPECT_EQ(EffectiveSamples().count(), 0);
}

TEST(ShareError, SamplesOfEqualWeightCountInFull) {
  EffectiveSamples samples;
  samples.AddThread(1e9, 100);
  samples.AddThread(3e9, 300);
  EXPECT_DOUBLE_EQ(samples.count(), 400);
}

TEST(ShareError, AFewHeavySamplesLeaveMoreError) {
  EffectiveSamples samples;
  samples.AddThread(1e9, 1000);
  samples.AddThread(1e9, 10);
  EXPECT_LT(samples.count(), 41);
}

TEST(ShareError, SaysHowManySamplesWereTaken) {
  EffectiveSamples samples;
  samples.AddThread(1e9, 1000);
  samples.AddThread(1e9, 10);
  EXPECT_DOUBLE_EQ(samples.taken(), 1010);
  EXPECT_LT(samples.count(), samples.taken());
}

// Two hundred threads, of which one was sampled: the others are no more exact for it.
TEST(ShareError, WhatNoSampleDividesWidensTheError) {
  EffectiveSamples one;
  one.AddThread(7e6, 10);
  EffectiveSamples all = one;
  for (int i = 0; i < 199; ++i) all.AddThread(7e6, 0);
  EXPECT_DOUBLE_EQ(all.taken(), 10);
  EXPECT_DOUBLE_EQ(all.count(), 10);
  EXPECT_DOUBLE_EQ(all.unknown(), 0.995);
  // A share of 0.5 % may be one of all.
  EXPECT_GT(0.005 + 2.01 * all.StandardErrorOf(0.005), 1);
  EXPECT_DOUBLE_EQ(one.StandardErrorOf(0.3), StandardErrorOfShare(0.3, 10));
  EXPECT_EQ(one.unknown(), 0);
  EXPECT_TRUE(std::isnan(EffectiveSamples().StandardErrorOf(0.3)));
}

// Two threads, one sampled ten times as often: the spread of the estimate is what the error says.
TEST(ShareError, IsTheSpreadOfWhatIsEstimated) {
  constexpr int kRuns = 2'000, kOften = 500, kSeldom = 50;
  constexpr double kShare = 0.3;
  std::mt19937_64 random(1);
  std::binomial_distribution<int> often(kOften, kShare), seldom(kSeldom, kShare);
  double squares = 0;
  for (int i = 0; i < kRuns; ++i) {
    const double estimate = (1.0 * often(random) / kOften + 1.0 * seldom(random) / kSeldom) / 2;
    squares += (estimate - kShare) * (estimate - kShare);
  }
  EffectiveSamples samples;
  samples.AddThread(1, kOften);
  samples.AddThread(1, kSeldom);
  EXPECT_NEAR(StandardErrorOfShare(kShare, samples.count()), std::sqrt(squares / kRuns), 0.003);
}

}  // namespace
}  // namespace strobe
