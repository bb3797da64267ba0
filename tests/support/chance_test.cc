#include "support/chance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

// The exact probability of a count below `least` or above `most`.
double OutsideOfBinomial(std::int64_t trials, double p, ChanceBounds bounds) {
  double outside = 0;
  for (std::int64_t k = 0; k <= trials; ++k) {
    if (bounds.Hold(static_cast<double>(k))) continue;
    outside += std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) -
                        std::lgamma(trials - k + 1.0) + static_cast<double>(k) * std::log(p) +
                        static_cast<double>(trials - k) * std::log1p(-p));
  }
  return outside;
}

TEST(Chance, ABinomialCountIsOutsideAsSeldomAsStated) {
  for (const std::int64_t trials : {1, 10, 100, 1000, 20000}) {
    for (const double p : {0.001, 0.05, 0.3, 0.5, 0.9}) {
      const ChanceBounds bounds = BinomialBounds(trials, p);
      EXPECT_LE(OutsideOfBinomial(trials, p, bounds), kChanceOfOne) << trials << " of " << p;
      EXPECT_TRUE(bounds.Hold(static_cast<double>(trials) * p));
    }
  }
}

TEST(Chance, TheBoundsAreNoWiderThanTheyMust) {
  // 6.6 standard deviations of a normal distribution leave 4e-11 outside.
  const ChanceBounds bounds = BinomialBounds(10000, 0.3);
  const double deviation = std::sqrt(10000 * 0.3 * 0.7);
  EXPECT_NEAR(bounds.most, 3000 + 6.9 * deviation, 0.2 * deviation);
  EXPECT_NEAR(bounds.least, 3000 - 6.9 * deviation, 0.2 * deviation);
}

TEST(Chance, APoissonCountIsOutsideAsSeldomAsStated) {
  for (const double mean : {0.01, 1.0, 20.0, 500.0}) {
    const ChanceBounds bounds = PoissonBounds(mean);
    double outside = 0;
    for (int k = 0; k < 5000; ++k) {
      if (!bounds.Hold(k)) outside += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
    }
    EXPECT_LE(outside, kChanceOfOne) << mean;
  }
}

TEST(Chance, MeansOfMoreValuesHaveNarrowerBounds) {
  const ChanceBounds few = ExponentialMeanBounds(100, 5);
  const ChanceBounds many = ExponentialMeanBounds(10000, 5);
  EXPECT_LT(few.least, many.least);
  EXPECT_GT(few.most, many.most);
  EXPECT_TRUE(many.Hold(5));
  EXPECT_NEAR(many.most, 5 * 1.07, 0.05);
  const ChanceBounds bounded = BoundedMeanBounds(10000, 0.5, 0, 1);
  EXPECT_NEAR(bounded.most - 0.5, 0.0344, 0.001);
}

TEST(Chance, ASumOfKnownVarianceIsOutsideAsSeldomAsStated) {
  for (const std::int64_t trials : {1, 10, 1000, 20000}) {
    for (const double p : {0.001, 0.3, 0.9}) {
      const double mean = static_cast<double>(trials) * p;
      const ChanceBounds bounds = SumBounds(mean, mean * (1 - p), std::max(p, 1 - p));
      EXPECT_LE(OutsideOfBinomial(trials, p, bounds), kChanceOfOne) << trials << " of " << p;
    }
  }
  EXPECT_NEAR(SumBounds(3000, 2100, 0.7).most, 3000 + 6.9 * std::sqrt(2100), 10);
}

TEST(Chance, AValueOutsideFailsTheTestAndNamesWhatItIs) {
  ExpectWithinChance(3000, BinomialBounds(10000, 0.3), "an expected count");
  EXPECT_NONFATAL_FAILURE(
      ExpectWithinChance(3500, BinomialBounds(10000, 0.3), "heads of a bent coin"),
      "heads of a bent coin: 3500 is not in");
}

}  // namespace
}  // namespace strobe::testing
