#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "absl/strings/numbers.h"

namespace strobe::internal {

double ChanceBeyond(double errors) { return std::erfc(errors / std::sqrt(2.0)); }

// The sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
double StudentChanceBeyond(double errors, std::size_t degrees) {
  const double angle = std::atan(errors / std::sqrt(static_cast<double>(degrees)));
  const bool is_odd = degrees % 2 == 1;
  const double square = std::cos(angle) * std::cos(angle);
  double term = is_odd ? std::cos(angle) : 1;
  double sum = degrees == 1 ? 0 : term;
  for (std::size_t i = is_odd ? 3 : 2; i < degrees; i += 2) {
    term *= square * static_cast<double>(i - 1) / static_cast<double>(i);
    sum += term;
  }
  const double within =
      is_odd ? (angle + std::sin(angle) * sum) / (std::numbers::pi / 2) : std::sin(angle) * sum;
  return std::max(0.0, 1 - within);
}

double ErrorsForFamily(std::size_t changes, double false_alarms) {
  constexpr double kMostErrors = 40;
  constexpr int kSteps = 60;  // halve the range to less than any error matters
  const double each =
      -std::expm1(std::log1p(-false_alarms) / static_cast<double>(changes == 0 ? 1 : changes));
  double low = 0, high = kMostErrors;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    (ChanceBeyond(middle) > each ? low : high) = middle;
  }
  return high;
}

double ErrorOfAmount(double amount, double whole, const EffectiveSamples& samples) {
  if (!(samples.count() > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double weight = whole * (1 - samples.unknown()) / samples.count();
  // One sample more than there are: what was never sampled has an error, too.
  const double hits = weight > 0 ? std::abs(amount) / weight : 0;
  return std::hypot(weight * std::sqrt(hits + 1), whole * samples.unknown() / 2);
}

double ErrorOfTotal(double total, double whole, const EffectiveSamples& samples) {
  if (!(samples.count() > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double weight = std::abs(whole) / samples.count();
  return weight > 0 ? weight * std::sqrt(std::abs(total) / weight + 1) : 0;
}

RunSpread RunSpread::Of(std::span<const double> base, std::span<const double> now) {
  if (base.size() < kLeastRuns || now.size() < kLeastRuns) return {};
  const auto mean = [](std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const auto squares = [](std::span<const double> values, double middle) {
    double sum = 0;
    for (const double value : values) sum += (value - middle) * (value - middle);
    return sum;
  };
  const double base_mean = mean(base), now_mean = mean(now);
  RunSpread spread{.change = now_mean - base_mean, .degrees = base.size() + now.size() - 2};
  const double variance =
      (squares(base, base_mean) + squares(now, now_mean)) / static_cast<double>(spread.degrees);
  spread.error = std::sqrt(
      variance * (1 / static_cast<double>(base.size()) + 1 / static_cast<double>(now.size())));
  return spread;
}

bool AmountChange::IsBeyondChance(double errors) const {
  if (!(std::abs(change) > errors * std::max(error, chance_error))) return false;
  if (spread.degrees == 0) return true;
  const double distance = std::abs(spread.change) / spread.error;  // infinite without a spread
  return StudentChanceBeyond(distance, spread.degrees) < ChanceBeyond(errors);
}

std::optional<ChangeLimit> ChangeLimit::Parse(std::string_view text) {
  constexpr std::string_view kSigma = "sigma";
  ChangeLimit limit;
  limit.up_ = !text.starts_with('-');
  limit.down_ = !text.starts_with('+');
  if (!limit.up_ || !limit.down_) text.remove_prefix(1);
  limit.is_percent_ = text.ends_with('%');
  if (!limit.is_percent_ && !text.ends_with(kSigma)) return std::nullopt;
  text.remove_suffix(limit.is_percent_ ? 1 : kSigma.size());
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789.") == text.npos &&
                         absl::SimpleAtod({text.data(), text.size()}, &limit.number_);
  return is_number ? std::optional(limit) : std::nullopt;
}

bool ChangeLimit::IsBeyond(const AmountChange& change, double base_whole,
                           std::size_t changes) const {
  if (change.change > 0 ? !up_ : !down_) return false;
  const double size = std::abs(change.change);
  if (is_percent_) {
    return (change.is_significant || std::isnan(change.error)) &&
           size > std::abs(base_whole) * number_ / 100;
  }
  return size > ErrorsForFamily(changes, ChanceBeyond(number_)) *
                    std::max(change.error, change.chance_error);
}

}  // namespace strobe::internal
