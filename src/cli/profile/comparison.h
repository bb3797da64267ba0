// How an amount in one profile differs from that in another, and whether that is more than chance.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "strobe/core/share_error.h"

namespace strobe::internal {

// A change is significant if it is larger than so many standard errors that chance alone makes one
// in 1 / kFalseAlarms comparisons of two profiles of the same program have a significant change.
inline constexpr double kFalseAlarms = 0.003;

// That number of errors, for a comparison of `changes` changes: each is held to the part of
// `false_alarms` that leaves so much for all of them (Šidák 1967).
double ErrorsForFamily(std::size_t changes, double false_alarms = kFalseAlarms);
// How often chance is beyond `errors` standard errors, to either side.
double ChanceBeyond(double errors);

// The standard error of an amount that is a part of `whole`; NaN without samples. The totals of two
// runs differ, too: samples are taken to come as the events of a Poisson process, so the error of
// the whole is that of their number.
double ErrorOfAmount(double amount, double whole, const EffectiveSamples& samples);
double ErrorOfWhole(double whole, const EffectiveSamples& samples);

struct AmountChange {
  double change = 0;
  double error = 0;             // its standard error; NaN if samples are not counted
  bool is_significant = false;  // larger than its family allows
};

// A condition for a change, as --fail-if has it: "+5%", "-5%", "5%", "3sigma", "+3sigma".
class ChangeLimit {
 public:
  // Nothing if `text` is none.
  static std::optional<ChangeLimit> Parse(std::string_view text);

  // True if the change is beyond the limit: for a percentage, of `base_whole`, if it is
  // significant, too, as far as that is known; for "3sigma", if it is larger than what makes one of
  // `changes` changes go that far as seldom as one alone is beyond three errors.
  [[nodiscard]] bool IsBeyond(const AmountChange& change, double base_whole,
                              std::size_t changes) const;
  [[nodiscard]] bool needs_errors() const { return !is_percent_; }

 private:
  double number_ = 0;
  bool is_percent_ = false;
  bool up_ = false, down_ = false;
};

}  // namespace strobe::internal
