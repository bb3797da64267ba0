// How an amount in one profile differs from that in another, and whether that is more than chance.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
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
// The same of errors that are themselves estimated, with `degrees` degrees of freedom: that of
// Student's t. `degrees` is at least 1.
double StudentChanceBeyond(double errors, std::size_t degrees);

// The standard error of an amount that is a part of `whole`; NaN without samples. The totals of two
// runs differ, too: samples are taken to come as the events of a Poisson process, so the error of a
// total is that of their number. `samples` are those that divide `whole`.
double ErrorOfAmount(double amount, double whole, const EffectiveSamples& samples);
double ErrorOfTotal(double total, double whole, const EffectiveSamples& samples);

// Two groups of runs, by the amounts of each.
struct RunSpread {
  // Fewer runs on either side say too little of their spread.
  static constexpr std::size_t kLeastRuns = 3;

  // Without degrees of freedom if either group has less than kLeastRuns.
  static RunSpread Of(std::span<const double> base, std::span<const double> now);

  double change = 0;        // of the means
  double error = 0;         // its standard error, by the spread within the groups
  std::size_t degrees = 0;  // of freedom of the error
};

// How far an amount has changed.
struct AmountChange {
  double change = 0;
  double error = 0;  // its standard error; NaN if samples are not counted
  // The standard error that it would have if both sides were as one of them: the larger of the two.
  // A change is held against it. A side with few samples has a small error if it has met few of
  // what the other side knows to be there.
  double chance_error = 0;
  RunSpread spread{};           // of several runs
  bool is_significant = false;  // larger than its family allows

  // True if it is larger than `errors` standard errors, and so is, by Student's t, that of the
  // spread between the runs, if there are enough.
  [[nodiscard]] bool IsBeyondChance(double errors) const;
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
