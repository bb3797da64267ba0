#include "strobe/provider/amount_sampler.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Returns the numbers of a list, one after the other.
class ListedRandom {
 public:
  static inline std::vector<double> distances;
  static inline std::vector<double> fractions;
  static inline std::uint64_t seed = 0;

  constexpr explicit ListedRandom(std::uint64_t number) : number_(number) {}
  double Exponential(double mean) {
    seed = number_;
    return mean * Next(distances);
  }
  static double Uniform() { return Next(fractions); }

 private:
  static double Next(std::vector<double>& list) {
    if (list.empty()) return 1;
    const double first = list.front();
    list.erase(list.begin());
    return first;
  }
  std::uint64_t number_;
};
using ListedSampler = BasicAmountSampler<ListedRandom>;

TEST(AmountSampler, SamplesTheEventThatThePointLiesIn) {
  ListedRandom::distances = {2.995, 0.5, 1};
  ListedRandom::fractions = {0, 0};
  ListedSampler sampler;
  std::vector<int> sampled;
  for (int i = 0; i < 5; ++i) {
    if (!sampler.Count(100)) continue;
    if (sampler.Take(100, 100, 7).count > 0) sampled.push_back(i);
  }
  // 299.5 bytes lie in the third event. 50 bytes from its end lie in the fourth.
  EXPECT_EQ(sampled, (std::vector<int>{2, 3}));
  EXPECT_EQ(ListedRandom::seed, 7U);
}

TEST(AmountSampler, CountsASampleForThoseThatWereNotSampled) {
  ListedRandom::distances = {0, 0, 0};
  ListedRandom::fractions = {0, 0.99};
  ListedSampler sampler;
  ASSERT_TRUE(sampler.Count(1000));
  // 1 / (1 - exp(-1)) = 1.58
  SampledAmounts amounts = sampler.Take(1000, 1000, 0);
  EXPECT_EQ(amounts.count, 1);
  EXPECT_EQ(amounts.total, 1582);
  ASSERT_TRUE(sampler.Count(1000));
  amounts = sampler.Take(1000, 1000, 0);
  EXPECT_EQ(amounts.count, 2);
  EXPECT_EQ(amounts.total, 1582);
}

TEST(AmountSampler, GoesByTheIntervalThatTheDistanceWasDrawnWith) {
  ListedRandom::distances = {0, 0, 0};
  ListedRandom::fractions = {0, 0};
  ListedSampler sampler;
  ASSERT_TRUE(sampler.Count(1));
  EXPECT_EQ(sampler.Take(1, 1000, 0).count, 1000);
  ASSERT_TRUE(sampler.Count(1));
  EXPECT_EQ(sampler.Take(1, 10, 0).count, 1000) << "the point was one of the first interval";
  ASSERT_TRUE(sampler.Count(1));
  EXPECT_EQ(sampler.Take(1, 10, 0).count, 11) << "1 / (1 - exp(-0.1)), rounded up by the list";
}

TEST(AmountSampler, TakesEverySizeAndInterval) {
  AmountSampler sampler;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, SIZE_MAX / 4, SIZE_MAX}) {
    for (const std::int64_t interval : {std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
      if (!sampler.Count(size)) continue;
      const SampledAmounts amounts = sampler.Take(size, interval, 1);
      EXPECT_GE(amounts.count, 0);
    }
  }
}

// Estimated and true sums of many threads' events: each size alone, and mixed.
TEST(AmountSampler, IsUnbiasedForEveryMixtureOfSizes) {
  constexpr std::array<std::size_t, 6> kSizes{16, 64, 4096, 60'000, 524'288, 10'000'000};
  constexpr std::int64_t kInterval = 524'288;
  constexpr int kThreads = 2000;
  constexpr int kRounds = 40;
  std::array<double, kSizes.size()> objects{};
  std::array<double, kSizes.size()> bytes{};
  std::array<double, kSizes.size()> variances{};  // of the sum of objects
  for (int thread = 0; thread < kThreads; ++thread) {
    AmountSampler sampler;
    for (int i = 0; i < kRounds; ++i) {
      for (std::size_t k = 0; k < kSizes.size(); ++k) {
        if (!sampler.Count(kSizes[k])) continue;
        const SampledAmounts amounts =
            sampler.Take(kSizes[k], kInterval, static_cast<std::uint64_t>(thread) + 1);
        objects[k] += static_cast<double>(amounts.count);
        bytes[k] += static_cast<double>(amounts.total);
      }
    }
  }
  for (std::size_t k = 0; k < kSizes.size(); ++k) {
    const double truth = 1.0 * kThreads * kRounds;
    const double p = -std::expm1(-static_cast<double>(kSizes[k]) / kInterval);
    // Of a binomial number of samples; rounding at random adds at most 1/4 a sample.
    variances[k] = truth * (1 - p) / p + truth * p / 4;
    EXPECT_NEAR(objects[k], truth, 5 * std::sqrt(variances[k])) << kSizes[k];
    EXPECT_NEAR(bytes[k] / static_cast<double>(kSizes[k]), truth, 5 * std::sqrt(variances[k]) + 1)
        << kSizes[k];
  }
}

// The same sums, of events that are each sampled by themselves.
TEST(AmountSampler, SamplesSingleEventsWithoutBias) {
  constexpr std::int64_t kInterval = 1'000'000;
  constexpr double kEvents = 200'000;
  RandomSource random(1);
  for (const std::uint64_t amount : {50'000, 400'000, 3'000'000}) {
    double count = 0;
    double total = 0;
    for (int i = 0; i < kEvents; ++i) {
      const SampledAmounts amounts = SampleOne(amount, kInterval, random);
      count += static_cast<double>(amounts.count);
      total += static_cast<double>(amounts.total);
    }
    const double p = -std::expm1(-static_cast<double>(amount) / kInterval);
    const double deviation = std::sqrt(kEvents * ((1 - p) / p + p / 4));
    EXPECT_NEAR(count, kEvents, 5 * deviation) << amount;
    EXPECT_NEAR(total / static_cast<double>(amount), kEvents, 5 * deviation + 1) << amount;
  }
}

TEST(AmountSampler, SamplesEverySingleEventThatIsFarAboveTheInterval) {
  RandomSource random(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(SampleOne(1000, 1, random), (SampledAmounts{.count = 1, .total = 1000}));
    EXPECT_EQ(SampleOne(0, 1, random), SampledAmounts()) << "no point lies in nothing";
  }
}

TEST(AmountSampler, BeginsWithANewSeedEachTime) {
  const std::uint64_t first = NewSeed();
  EXPECT_NE(NewSeed(), first);
}

}  // namespace
}  // namespace strobe::internal
