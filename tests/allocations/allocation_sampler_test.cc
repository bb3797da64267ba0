#include "strobe/allocations/allocation_sampler.h"

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
using ListedSampler = BasicAllocationSampler<ListedRandom>;

TEST(AllocationSampler, SamplesTheAllocationThatThePointLiesIn) {
  ListedRandom::distances = {2.995, 0.5, 1};
  ListedRandom::fractions = {0, 0};
  ListedSampler sampler;
  std::vector<int> sampled;
  for (int i = 0; i < 5; ++i) {
    if (!sampler.Count(100)) continue;
    if (sampler.Take(100, 100, 7).objects > 0) sampled.push_back(i);
  }
  // 299.5 bytes lie in the third allocation. 50 bytes from its end lie in the fourth.
  EXPECT_EQ(sampled, (std::vector<int>{2, 3}));
  EXPECT_EQ(ListedRandom::seed, 7U);
}

TEST(AllocationSampler, CountsASampleForThoseThatWereNotSampled) {
  ListedRandom::distances = {0, 0, 0};
  ListedRandom::fractions = {0, 0.99};
  ListedSampler sampler;
  ASSERT_TRUE(sampler.Count(1000));
  // 1 / (1 - exp(-1)) = 1.58
  AllocationAmounts amounts = sampler.Take(1000, 1000, 0);
  EXPECT_EQ(amounts.objects, 1);
  EXPECT_EQ(amounts.bytes, 1582);
  ASSERT_TRUE(sampler.Count(1000));
  amounts = sampler.Take(1000, 1000, 0);
  EXPECT_EQ(amounts.objects, 2);
  EXPECT_EQ(amounts.bytes, 1582);
}

TEST(AllocationSampler, GoesByTheIntervalThatTheDistanceWasDrawnWith) {
  ListedRandom::distances = {0, 0, 0};
  ListedRandom::fractions = {0, 0};
  ListedSampler sampler;
  ASSERT_TRUE(sampler.Count(1));
  EXPECT_EQ(sampler.Take(1, 1000, 0).objects, 1000);
  ASSERT_TRUE(sampler.Count(1));
  EXPECT_EQ(sampler.Take(1, 10, 0).objects, 1000) << "the point was one of the first interval";
  ASSERT_TRUE(sampler.Count(1));
  EXPECT_EQ(sampler.Take(1, 10, 0).objects, 11) << "1 / (1 - exp(-0.1)), rounded up by the list";
}

TEST(AllocationSampler, TakesEverySizeAndInterval) {
  AllocationSampler sampler;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, SIZE_MAX / 4, SIZE_MAX}) {
    for (const std::int64_t interval : {std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
      if (!sampler.Count(size)) continue;
      const AllocationAmounts amounts = sampler.Take(size, interval, 1);
      EXPECT_GE(amounts.objects, 0);
    }
  }
}

// Estimated and true sums of many threads' allocations: each size alone, and mixed.
TEST(AllocationSampler, IsUnbiasedForEveryMixtureOfSizes) {
  constexpr std::array<std::size_t, 6> kSizes{16, 64, 4096, 60'000, 524'288, 10'000'000};
  constexpr std::int64_t kInterval = 524'288;
  constexpr int kThreads = 2000;
  constexpr int kRounds = 40;
  std::array<double, kSizes.size()> objects{};
  std::array<double, kSizes.size()> bytes{};
  std::array<double, kSizes.size()> variances{};  // of the sum of objects
  for (int thread = 0; thread < kThreads; ++thread) {
    AllocationSampler sampler;
    for (int i = 0; i < kRounds; ++i) {
      for (std::size_t k = 0; k < kSizes.size(); ++k) {
        if (!sampler.Count(kSizes[k])) continue;
        const AllocationAmounts amounts =
            sampler.Take(kSizes[k], kInterval, static_cast<std::uint64_t>(thread) + 1);
        objects[k] += static_cast<double>(amounts.objects);
        bytes[k] += static_cast<double>(amounts.bytes);
      }
    }
  }
  for (std::size_t k = 0; k < kSizes.size(); ++k) {
    const double truth = 1.0 * kThreads * kRounds;
    const double p = -std::expm1(-static_cast<double>(kSizes[k]) / kInterval);
    // Of a binomial number of samples; rounding at random adds at most 1/4 a sample.
    variances[k] = truth * (1 - p) / p + truth * p / 4;
    EXPECT_NEAR(objects[k], truth, 4 * std::sqrt(variances[k])) << kSizes[k];
    EXPECT_NEAR(bytes[k] / static_cast<double>(kSizes[k]), truth, 4 * std::sqrt(variances[k]) + 1)
        << kSizes[k];
  }
}

}  // namespace
}  // namespace strobe::internal
