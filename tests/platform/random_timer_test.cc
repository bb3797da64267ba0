#include "strobe/platform/random_timer.h"

#include <array>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Counts draws by eighths of the mean, and holds each count to the distribution.
TEST(RandomTimer, GapsHaveAnExponentialDistribution) {
  constexpr int kDraws = 200'000;
  constexpr std::int64_t kMeanNs = 8'000'000;
  constexpr double kEighth = 0.125;
  std::array<int, 24> counts{};
  double sum_ns = 0;
  static RandomTimer timer;
  timer.mean_us = kMeanNs / 1000;
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t gap_ns = timer.NextGapNs();
    ASSERT_GE(gap_ns, 1);
    sum_ns += static_cast<double>(gap_ns);
    const auto bin = static_cast<std::size_t>(gap_ns / (kMeanNs / 8));
    if (bin < counts.size()) ++counts[bin];
  }
  EXPECT_NEAR(sum_ns / kDraws, kMeanNs, 5 * kMeanNs / std::sqrt(kDraws));
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    const double begin = kEighth * static_cast<double>(bin);
    const double expected = kDraws * (std::exp(-begin) - std::exp(-begin - kEighth));
    EXPECT_NEAR(counts[bin], expected, 5 * std::sqrt(expected)) << "bin " << bin;
  }
}

TEST(RandomTimer, AGapIsNeverZero) {
  RandomTimer timer;
  timer.mean_us = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_GE(timer.NextGapNs(), 1);
}

}  // namespace
}  // namespace strobe::internal
