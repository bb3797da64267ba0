// Bounds of what depends on chance, so that no test fails by it.
//
// A test that draws numbers, or samples what a generator has drawn, compares a count or a mean with
// the bounds that its size allows. Each bound is broken by chance once in 1 / kChanceOfOne runs at
// most, whatever the size. Bounds come from the inequalities of Chernoff, Hoeffding and Bernstein,
// which hold for every size, not from a normal approximation.
//
// Each check prints one line, "CHANCE <probability> <what>", and tests/summarize.py adds them up:
// the sum over a run of all tests stays below 10^-6.
//
// Rates on real time are not decided by chance: a loaded machine breaks every bound. A test on real
// time compares amounts with clocks that the program itself reads.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "support/caller.h"

namespace strobe::testing {

// The probability that one check fails by chance, both sides together.
inline constexpr double kChanceOfOne = 1e-10;

// What a count or a mean lies in.
struct ChanceBounds {
  double least = 0;
  double most = 0;

  [[nodiscard]] bool Hold(double value) const { return value >= least && value <= most; }
};

namespace internal {

// The point between `inside` and `outside` at which `divergence` reaches ln(2 / kChanceOfOne).
// `divergence` is 0 at `inside` and grows towards `outside`.
template <class Divergence>
double ReachOfChance(double inside, double outside, const Divergence& divergence) {
  const double limit = std::log(2 / kChanceOfOne);
  if (divergence(outside) < limit) return outside;
  constexpr int kBisections = 100;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (inside + outside) / 2;
    (divergence(middle) < limit ? inside : outside) = middle;
  }
  return outside;
}

// x ln (x / y), which is 0 for x = 0.
inline double Entropy(double x, double y) { return x == 0 ? 0 : x * std::log(x / y); }

}  // namespace internal

// Successes of `trials` independent trials, each of probability `p`.
inline ChanceBounds BinomialBounds(std::int64_t trials, double p) {
  const auto n = static_cast<double>(trials);
  const auto divergence = [n, p](double share) {
    return n * (internal::Entropy(share, p) + internal::Entropy(1 - share, 1 - p));
  };
  return {.least = n * internal::ReachOfChance(p, 0, divergence),
          .most = n * internal::ReachOfChance(p, 1, divergence)};
}

// Events of a Poisson process that has `mean` of them in the mean.
inline ChanceBounds PoissonBounds(double mean) {
  const auto divergence = [mean](double count) {
    return internal::Entropy(count, mean) + mean - count;
  };
  constexpr double kFar = 100;  // mean + 100 is beyond the bound of every mean below 1
  return {.least = internal::ReachOfChance(mean, 0, divergence),
          .most = internal::ReachOfChance(mean, 10 * mean + kFar, divergence)};
}

// The mean of `count` independent values that are distributed exponentially with `mean`.
inline ChanceBounds ExponentialMeanBounds(std::int64_t count, double mean) {
  const auto n = static_cast<double>(count);
  const auto divergence = [n](double ratio) { return n * (ratio - 1 - std::log(ratio)); };
  constexpr double kFar = 100;
  return {.least = mean * internal::ReachOfChance(1, 1e-300, divergence),
          .most = mean * internal::ReachOfChance(1, kFar, divergence)};
}

// The mean of `count` independent values between `low` and `high` whose expectation is `mean`.
inline ChanceBounds BoundedMeanBounds(std::int64_t count, double mean, double low, double high) {
  const double reach =
      (high - low) * std::sqrt(std::log(2 / kChanceOfOne) / (2 * static_cast<double>(count)));
  return {.least = mean - reach, .most = mean + reach};
}

// The sum of independent values, whose expectations add up to `mean` and their variances to
// `variance`, and none of which can be further than `furthest` from its expectation. (Bernstein.)
inline ChanceBounds SumBounds(double mean, double variance, double furthest) {
  const double limit = std::log(2 / kChanceOfOne);
  const double linear = furthest * limit / 3;
  const double reach = linear + std::sqrt(linear * linear + 2 * variance * limit);
  return {.least = mean - reach, .most = mean + reach};
}

// Fails the test if `value` is out of `bounds`. `what` says what was counted, and from which seed.
inline void ExpectWithinChance(double value, ChanceBounds bounds, const std::string& what,
                               Caller where = Caller::Here()) {
  std::printf("CHANCE %g %s: %g in [%g, %g]\n", kChanceOfOne, what.c_str(), value, bounds.least,
              bounds.most);
  if (bounds.Hold(value)) return;
  ADD_FAILURE_AT(where.file, where.line)
      << what << ": " << value << " is not in [" << bounds.least << ", " << bounds.most << "]";
}

}  // namespace strobe::testing
