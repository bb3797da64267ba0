#include "strobe/platform/random_timer.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "support/chance.h"

namespace strobe::internal {
namespace {

// Counts draws by eighths of the mean, and holds each count to the distribution. The address of the
// timer is a part of the seed, so the draws are others in each run.
TEST(RandomTimer, GapsHaveAnExponentialDistribution) {
  constexpr int kDraws = 200'000;
  constexpr std::int64_t kMeanNs = 8'000'000;
  constexpr double kEighth = 0.125;
  std::array<int, 24> counts{};
  double sum_ns = 0;
  static RandomTimer timer;
  timer.mean_us = kMeanNs / 1000;
  std::ostringstream seed;
  seed << " of " << kDraws << " gaps of a timer at " << &timer;
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t gap_ns = timer.NextGapNs();
    ASSERT_GE(gap_ns, 1);
    sum_ns += static_cast<double>(gap_ns);
    const auto bin = static_cast<std::size_t>(gap_ns / (kMeanNs / 8));
    if (bin < counts.size()) ++counts[bin];
  }
  testing::ExpectWithinChance(sum_ns / kDraws, testing::ExponentialMeanBounds(kDraws, kMeanNs),
                              "mean" + seed.str());
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    const double begin = kEighth * static_cast<double>(bin);
    const double share = std::exp(-begin) - std::exp(-begin - kEighth);
    testing::ExpectWithinChance(counts[bin], testing::BinomialBounds(kDraws, share),
                                "eighth " + std::to_string(bin) + seed.str());
  }
}

TEST(RandomTimer, AGapIsNeverZero) {
  RandomTimer timer;
  timer.mean_us = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_GE(timer.NextGapNs(), 1);
}

}  // namespace
}  // namespace strobe::internal
