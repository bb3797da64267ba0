#include "comparison.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"

namespace strobe::internal {

double ChanceBeyond(double errors) { return std::erfc(errors / std::sqrt(2.0)); }

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

double ErrorOfWhole(double whole, const EffectiveSamples& samples) {
  if (!(samples.count() > 0)) return std::numeric_limits<double>::quiet_NaN();
  return std::abs(whole) * std::sqrt((samples.count() + 1)) / samples.count();
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
  return size > ErrorsForFamily(changes, ChanceBeyond(number_)) * change.error;
}

}  // namespace strobe::internal
