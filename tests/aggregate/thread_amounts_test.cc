#include "../../src/aggregate/thread_amounts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "strobe/provider/sample_provider.h"

namespace strobe::internal {
namespace {

using Values = std::vector<std::int64_t>;
using Rows = std::vector<AmountRow>;

const AmountRow kSampled{.account = 0};
const AmountRow kResidual{.account = 0, .is_residual = true};

Values Divide(const Rows& rows, Values values, std::uint64_t sums_cut = 0) {
  EXPECT_EQ(DivideResiduals(rows, values), sums_cut);
  return values;
}

TEST(Division, PartsGetTheWholeInProportion) {
  Division division{.whole = 100, .parts = 7};
  EXPECT_EQ(division.Next(1), 14);
  EXPECT_EQ(division.Next(0), 0);
  EXPECT_EQ(division.Next(2), 28);
  EXPECT_EQ(division.Next(4), 58) << "the last one gets what rounding has left";
}

TEST(Division, NeverGivesMoreThanTheWhole) {
  Division more{.whole = 10, .parts = 4};
  EXPECT_EQ(more.Next(3), 7);
  EXPECT_EQ(more.Next(INT64_MAX), 3);
  EXPECT_EQ(more.Next(5), 0);
  Division none{.whole = 0, .parts = 5};
  EXPECT_EQ(none.Next(5), 0);
  Division unknown{.whole = 5, .parts = 0};
  EXPECT_EQ(unknown.Next(1), 5);
  EXPECT_EQ(unknown.Next(-1), 0);
}

TEST(DivideResiduals, SamplesGetTheClocksTimeInProportion) {
  EXPECT_EQ(Divide({kSampled, kResidual, kSampled}, {10, 8, 30}), (Values{12, 0, 36}));
  EXPECT_EQ(Divide({kSampled, kResidual, kSampled}, {10, -20, 30}), (Values{5, 0, 15}));
}

TEST(DivideResiduals, NoUnitIsLostToRounding) {
  for (const std::int64_t residual : {-5, -1, 1, 2, 1000, 1'000'003}) {
    const Values values = Divide({kSampled, kSampled, kSampled, kResidual}, {2, 2, 2, residual});
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), std::int64_t{0}), 6 + residual);
    EXPECT_EQ(values[3], 0);
    for (int i = 0; i < 3; ++i)
      EXPECT_LE(std::abs(values[i] - (6.0 + static_cast<double>(residual)) / 3), 1);
  }
}

TEST(DivideResiduals, WithoutSamplesAResidualStays) {
  EXPECT_EQ(Divide({kResidual}, {7}), (Values{7}));
  EXPECT_EQ(Divide({kSampled, kResidual}, {0, 7}), (Values{0, 7}));
  EXPECT_EQ(Divide({kResidual}, {-7}, 1), (Values{0}));
}

TEST(DivideResiduals, EachColumnOfEachAccountStandsForItself) {
  const Rows rows = {{.account = 0}, {.account = 1}, {.account = 1, .is_residual = true}};
  EXPECT_EQ(Divide(rows, {4, 5, 6, 7, 2, -1}), (Values{4, 5, 8, 6, 0, 0}));
}

TEST(DivideResiduals, ASumLessThanZeroBecomesZero) {
  EXPECT_EQ(Divide({kSampled, kResidual}, {3, -4}, 1), (Values{0, 0}));
  EXPECT_EQ(Divide({kSampled, {.account = 0}}, {3, -1}), (Values{2, 0})) << "of any row";
}

// A loop that spends 30 % of each period of 2 ms in A, sampled at random instants in windows of
// 100 ms, whose sums the clock gives: the share of A has no bias, and its variance is that of equal
// weights.
TEST(DivideResiduals, SharesOfRandomInstantsHaveNoBias) {
  constexpr int kWindows = 20'000;
  constexpr double kShare = 0.3;
  constexpr std::int64_t kWindowNs = 100'000'000;
  constexpr double kMeanNs = 10'000'000;
  RandomSource random(12);
  double sum = 0;
  double square = 0;
  double inverse_samples = 0;
  int sampled = 0;
  for (int window = 0; window < kWindows; ++window) {
    std::int64_t in_a = 0;
    std::int64_t in_b = 0;
    for (double at_ns = -std::log(1 - random.Uniform()) * kMeanNs; at_ns < kWindowNs;
         at_ns -= std::log(1 - random.Uniform()) * kMeanNs)
      ++(std::fmod(at_ns, 2e6) < kShare * 2e6 ? in_a : in_b);
    const std::int64_t samples = in_a + in_b;
    const auto mean_ns = static_cast<std::int64_t>(kMeanNs);
    const Values values = Divide({kSampled, kSampled, kResidual},
                                 {in_a * mean_ns, in_b * mean_ns, kWindowNs - samples * mean_ns});
    ASSERT_EQ(values[0] + values[1] + values[2], kWindowNs);
    if (samples == 0) continue;
    ++sampled;
    const double share = static_cast<double>(values[0]) / kWindowNs;
    sum += share;
    square += (share - kShare) * (share - kShare);
    inverse_samples += 1 / static_cast<double>(samples);
  }
  const double variance = square / sampled;
  EXPECT_NEAR(sum / sampled, kShare, 4 * std::sqrt(variance / sampled));
  EXPECT_NEAR(variance / (kShare * (1 - kShare) * inverse_samples / sampled), 1, 0.06);
}

constexpr std::array<std::int64_t, 1> kLeast = {50};
AmountRow SampledIn(std::uint32_t account, std::uint32_t pool) {
  return {.account = account, .pool = pool};
}
AmountRow ResidualIn(std::uint32_t account, std::uint32_t pool) {
  return {.account = account, .pool = pool, .is_residual = true};
}
Values DividePooled(const Rows& rows, Values values) {
  EXPECT_EQ(DivideResiduals(rows, values, kLeast), 0u);
  return values;
}

TEST(DivideResiduals, AccountsWithFewSamplesAreOneWithTheirPool) {
  EXPECT_EQ(DividePooled({SampledIn(0, 1), ResidualIn(0, 1), ResidualIn(1, 1), ResidualIn(2, 1),
                          SampledIn(3, 1), ResidualIn(3, 1)},
                         {10, -3, 25, 28, 10, 2}),
            (Values{36, 0, 0, 0, 36, 0}));
}

TEST(DivideResiduals, AnAccountWithEnoughStandsForItself) {
  EXPECT_EQ(DividePooled({SampledIn(0, 1), ResidualIn(0, 1), SampledIn(1, 1), ResidualIn(2, 1)},
                         {49, 1, 10, 49}),
            (Values{50, 0, 59, 0}));
  EXPECT_EQ(DividePooled({ResidualIn(0, 1), SampledIn(1, 1)}, {50, 10}), (Values{50, 10}))
      << "no chance explains that it has no sample";
}

TEST(DivideResiduals, EachPoolStandsForItself) {
  EXPECT_EQ(DividePooled({ResidualIn(0, 1), SampledIn(1, 2), ResidualIn(2, 2)}, {7, 10, 3}),
            (Values{7, 13, 0}));
  EXPECT_EQ(DividePooled({ResidualIn(0, 1), ResidualIn(1, 2), SampledIn(2, 2)}, {30, 20, 90}),
            (Values{30, 20, 90}))
      << "no sample can say whose they are";
}

TEST(DivideResiduals, ColumnsBeyondTheLimitsHaveNoPools) {
  Values values = {10, 10, 5, 5};
  DivideResiduals(Rows{SampledIn(0, 1), ResidualIn(1, 1)}, values, kLeast);
  EXPECT_EQ(values, (Values{15, 10, 0, 5}));
}

// Threads of one name, of 1 ms in A and of 7 ms in B by turns, with a sample each 10 ms whose first
// one is uniform. Few have a sample, and most of these are long ones.
TEST(DivideResiduals, SharesOfShortThreadsHaveNoBias) {
  constexpr std::uint32_t kThreads = 40'000;
  constexpr std::int64_t kPeriodNs = 10'000'000;
  RandomSource random(7);
  Rows rows;
  Values values;
  std::int64_t total_ns = 0;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    const std::int64_t used_ns = thread % 2 == 0 ? 1'000'000 : 7'000'000;
    const bool is_sampled = random.Uniform() * kPeriodNs < static_cast<double>(used_ns);
    rows.insert(rows.end(), {SampledIn(thread, 0), ResidualIn(thread, 0)});
    values.insert(values.end(),
                  {is_sampled ? kPeriodNs : 0, used_ns - (is_sampled ? kPeriodNs : 0)});
    total_ns += used_ns;
  }
  DivideResiduals(rows, values, std::array{5 * kPeriodNs});
  std::int64_t in_a = 0;
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    sum += values[row];
    EXPECT_TRUE(!rows[row].is_residual || values[row] == 0);
    if (rows[row].account % 2 == 0) in_a += values[row];
  }
  EXPECT_EQ(sum, total_ns);
  const double samples = static_cast<double>(total_ns) / kPeriodNs;
  EXPECT_NEAR(static_cast<double>(in_a) / static_cast<double>(sum), 0.125,
              4 * std::sqrt(0.125 * 0.875 / samples));
}

}  // namespace
}  // namespace strobe::internal
