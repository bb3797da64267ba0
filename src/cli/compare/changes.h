// Changes: the functions of two profiles, how far their amounts differ, and whether by more than
// chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "commands/command.h"
#include "profile/comparison.h"
#include "profile/costs.h"

namespace strobe::internal {

// Units of work that amounts can be divided by, besides numbers and the keys of labels.
inline constexpr std::string_view kPerIterations = "iterations";
inline constexpr std::string_view kPerSamples = "samples";
inline constexpr std::string_view kPerSeconds = "seconds";

// What a comparison needs of a profile, and keeps: the profile itself may be large.
struct Side {
  // Amounts are divided by `per`: one of the units above, a number, or the key of a label, whose
  // values are counted; not at all if it is empty. InvalidArgument if the profile does not have it.
  static absl::StatusOr<Side> Of(const FilteredProfile& profile, std::string_view per);

  std::int64_t sum = 0, whole = 0;  // of the column: see FilteredProfile
  double units = 1;                 // of work
  EffectiveSamples samples{};
  absl::flat_hash_map<std::string, FunctionCost> functions{};  // those that are not 0

  // True if there is nothing in the profile, and so no sample that says what one weighs.
  [[nodiscard]] bool is_empty() const { return whole == 0 && !(samples.count() > 0); }
  // By unit of work: an amount, the standard error of a part that is so much, and that of a total.
  // `weights` is the side whose samples say what a sample weighs: this one, unless it is empty.
  [[nodiscard]] double PerUnit(std::int64_t amount) const {
    return static_cast<double>(amount) / units;
  }
  [[nodiscard]] double ErrorOf(double per_unit, const Side& weights) const {
    return ErrorOfAmount(per_unit * units, static_cast<double>(weights.whole), weights.samples) /
           units;
  }
  [[nodiscard]] double ErrorOfSum(double per_unit, const Side& weights) const {
    return ErrorOfTotal(per_unit * units, static_cast<double>(weights.sum), weights.samples) /
           units;
  }
};

// A function in two profiles.
struct FunctionChange {
  std::string name;
  FunctionCost base{}, now{};
  double base_amount = 0, now_amount = 0;  // by unit of work
  AmountChange change{};
};

class Changes {
 public:
  // Of functions by themselves, or with what they called. If a side is the sum of several runs,
  // `base_runs` and `now_runs` have each of them.
  Changes(const Side& base, const Side& now, bool by_total, std::span<const Side> base_runs = {},
          std::span<const Side> now_runs = {});

  // What may change: the functions, and the total. The number of them makes the family whose
  // errors Judge takes: see ErrorsForFamily.
  [[nodiscard]] std::size_t count() const { return rows_.size() + 1; }
  // False if a profile does not count its samples, or if neither has any.
  [[nodiscard]] bool has_errors() const;
  // Says which changes are significant. Puts those first, then the largest.
  void Judge(double errors);

  [[nodiscard]] const std::vector<FunctionChange>& rows() const { return rows_; }
  // The total, whose name is kTotalName.
  [[nodiscard]] const FunctionChange& total() const { return total_; }

  static constexpr const char* kTotalName = "the total";

 private:
  // Samples that come in clusters of one stack vary more than independent ones, in all functions
  // alike. If there are enough runs, the errors by samples grow by what the functions together vary
  // more between runs. The spread of a single function says too little of a few samples.
  void AllowForSpread();

  std::vector<FunctionChange> rows_;
  FunctionChange total_;
};

}  // namespace strobe::internal
