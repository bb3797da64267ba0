#include "../../../src/cli/profile/comparison.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace strobe::internal {
namespace {

EffectiveSamples Samples(double count) {
  EffectiveSamples samples;
  samples.AddThread(1, count);
  return samples;
}

TEST(ErrorsForFamilyTest, LeavesOneChanceForAllOfThem) {
  // Of a normal distribution, 0.3 % are beyond 2.968 standard deviations.
  EXPECT_NEAR(ErrorsForFamily(1), 2.968, 0.001);
  EXPECT_NEAR(ErrorsForFamily(0), ErrorsForFamily(1), 1e-9);
  for (const std::size_t changes : {1u, 10u, 1'000u, 100'000u}) {
    const double each = ChanceBeyond(ErrorsForFamily(changes));
    EXPECT_NEAR(1 - std::pow(1 - each, static_cast<double>(changes)), kFalseAlarms, 1e-6);
  }
}

TEST(ErrorOfAmountTest, IsThatOfTheNumberOfSamples) {
  // 25 % of 10,000 samples of 1 ms each.
  EXPECT_NEAR(ErrorOfAmount(2.5e9, 1e10, Samples(10'000)), 1e6 * std::sqrt(2'501.0), 1);
  EXPECT_GT(ErrorOfAmount(0, 1e10, Samples(10'000)), 0) << "what was never sampled may be there";
  EXPECT_NEAR(ErrorOfTotal(1e10, 1e10, Samples(10'000)), 1e6 * std::sqrt(10'001.0), 1);
  EXPECT_NEAR(ErrorOfTotal(4e10, 1e10, Samples(10'000)), 1e6 * std::sqrt(40'001.0), 1);
  EXPECT_TRUE(std::isnan(ErrorOfAmount(1, 2, EffectiveSamples())));
  EXPECT_TRUE(std::isnan(ErrorOfTotal(2, 2, EffectiveSamples())));
}

TEST(ErrorOfAmountTest, WhatIsUnknownWidensIt) {
  EffectiveSamples samples = Samples(1'000'000);
  samples.AddUnknown(1);
  EXPECT_NEAR(ErrorOfAmount(0.1, 2, samples), 0.5, 0.001) << "half of what is unknown";
}

// Two runs of one program of 40 functions, from the same shares: chance makes a change significant
// in at most 0.3 % of the comparisons, all of the functions together.
TEST(ErrorsForFamilyTest, AProgramSeldomDiffersFromItself) {
  constexpr int kPairs = 4'000, kSamples = 2'000;
  constexpr std::size_t kFunctions = 40;
  std::mt19937_64 random(7);
  std::array<double, kFunctions> weights{};
  for (std::size_t i = 0; i < kFunctions; ++i) weights[i] = 1.0 / static_cast<double>(i * i + 1);
  std::discrete_distribution<std::size_t> functions(weights.begin(), weights.end());
  const auto run = [&] {
    std::array<double, kFunctions> counts{};
    for (int i = 0; i < kSamples; ++i) ++counts[functions(random)];
    return counts;
  };
  const double errors = ErrorsForFamily(kFunctions + 1);
  int alarms = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto base = run(), now = run();
    bool is_alarm = false;
    for (std::size_t i = 0; i < kFunctions; ++i) {
      const double error = std::hypot(ErrorOfAmount(base[i], kSamples, Samples(kSamples)),
                                      ErrorOfAmount(now[i], kSamples, Samples(kSamples)));
      is_alarm = is_alarm || std::abs(now[i] - base[i]) > errors * error;
    }
    alarms += is_alarm ? 1 : 0;
  }
  EXPECT_LE(alarms, kPairs * kFalseAlarms);
}

TEST(StudentChanceBeyondTest, AgreesWithPrintedTables) {
  // Two-sided points of Student's t, as statistical tables have them.
  struct Point {
    std::size_t degrees;
    double errors, chance;
  };
  for (const Point& point : {Point{1, 12.706, 0.05},
                             {2, 4.303, 0.05},
                             {3, 5.841, 0.01},
                             {4, 8.610, 0.001},
                             {5, 6.869, 0.001},
                             {30, 2.750, 0.01},
                             {120, 3.373, 0.001}})
    EXPECT_NEAR(StudentChanceBeyond(point.errors, point.degrees) / point.chance, 1, 2e-3)
        << point.degrees;
  EXPECT_NEAR(StudentChanceBeyond(3, 1'000'000), ChanceBeyond(3), 1e-6);
  EXPECT_EQ(StudentChanceBeyond(0, 4), 1);
  EXPECT_EQ(StudentChanceBeyond(std::numeric_limits<double>::infinity(), 5), 0);
}

TEST(RunSpreadTest, IsThatWithinTheGroups) {
  const RunSpread spread = RunSpread::Of(std::array{1.0, 2.0, 3.0}, std::array{11.0, 12.0, 13.0});
  EXPECT_EQ(spread.change, 10);
  EXPECT_NEAR(spread.error, std::sqrt(2.0 / 3), 1e-12);
  EXPECT_EQ(spread.degrees, 4u);
  EXPECT_EQ(RunSpread::Of(std::array{1.0, 2.0}, std::array{1.0, 2.0, 3.0}).degrees, 0u);
}

TEST(AmountChangeTest, ASpreadOfRunsMakesAChangeLessSure) {
  AmountChange change{.change = 10, .error = 1, .chance_error = 1};
  EXPECT_TRUE(change.IsBeyondChance(3));
  change.chance_error = 4;
  EXPECT_FALSE(change.IsBeyondChance(3)) << "too few samples on one side";
  change.chance_error = 1;
  change.spread = {.change = 10, .error = 3, .degrees = 4};
  EXPECT_FALSE(change.IsBeyondChance(3)) << "3.3 errors, where 4 degrees of freedom need 6.6";
  change.spread.error = 1;
  EXPECT_TRUE(change.IsBeyondChance(3));
  change.error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(change.IsBeyondChance(3));
}

TEST(ChangeLimitTest, ReadsPercentagesAndErrors) {
  for (const char* text : {"5%", "+5%", "-0.5%", "3sigma", "+3sigma", "-2.5sigma"})
    EXPECT_TRUE(ChangeLimit::Parse(text).has_value()) << text;
  for (const char* text :
       {"", "%", "+", "5", "sigma", "+-5%", "x%", "1e3%", "nan%", "5 %", "3sigmas"})
    EXPECT_FALSE(ChangeLimit::Parse(text).has_value()) << text;
  EXPECT_TRUE(ChangeLimit::Parse("3sigma")->needs_errors());
  EXPECT_FALSE(ChangeLimit::Parse("3%")->needs_errors());
}

TEST(ChangeLimitTest, APercentageIsOfTheBase) {
  const AmountChange more{.change = 6, .error = 1, .is_significant = true};
  const AmountChange less{.change = -6, .error = 1, .is_significant = true};
  const AmountChange chance{.change = 6, .error = 5, .is_significant = false};
  const AmountChange unknown{.change = 6, .error = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(ChangeLimit::Parse("+5%")->IsBeyond(more, 100, 1));
  EXPECT_FALSE(ChangeLimit::Parse("+5%")->IsBeyond(more, 200, 1));
  EXPECT_FALSE(ChangeLimit::Parse("+5%")->IsBeyond(less, 100, 1));
  EXPECT_TRUE(ChangeLimit::Parse("-5%")->IsBeyond(less, 100, 1));
  EXPECT_TRUE(ChangeLimit::Parse("5%")->IsBeyond(less, 100, 1));
  EXPECT_FALSE(ChangeLimit::Parse("5%")->IsBeyond(chance, 100, 1));
  EXPECT_TRUE(ChangeLimit::Parse("5%")->IsBeyond(unknown, 100, 1)) << "a heap's, say";
}

TEST(ChangeLimitTest, ManyChangesNeedMoreErrors) {
  const AmountChange change{.change = 3.5, .error = 1};
  EXPECT_TRUE(ChangeLimit::Parse("3sigma")->IsBeyond(change, 100, 1));
  EXPECT_FALSE(ChangeLimit::Parse("3sigma")->IsBeyond(change, 100, 100));
  EXPECT_FALSE(ChangeLimit::Parse("-3sigma")->IsBeyond(change, 100, 1));
  const AmountChange of_few_samples{.change = 3.5, .error = 0.1, .chance_error = 2};
  EXPECT_FALSE(ChangeLimit::Parse("3sigma")->IsBeyond(of_few_samples, 100, 1)) << "as the table";
}

}  // namespace
}  // namespace strobe::internal
