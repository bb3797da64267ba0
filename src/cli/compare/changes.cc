#include "changes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "../../encode/row_texts.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// How many of the units of work a profile has done. NaN if it does not say.
double UnitsOf(const FilteredProfile& subject, std::string_view per) {
  if (per.empty()) return 1;
  double number = 0;
  if (absl::SimpleAtod({per.data(), per.size()}, &number)) return number;
  const Profile& profile = subject.profile();
  if (per == kPerIterations) return subject.loaded.Iterations();
  if (per == kPerSamples) return subject.samples.taken();
  if (per == kPerSeconds) return static_cast<double>(profile.duration_ns) / 1e9;
  std::set<std::string> values;
  for (const ProfileSample& sample : profile.samples) {
    for (const Label& label : profile.label_sets[sample.labels].labels()) {
      if (label.key == per) values.insert(ValueText(label));
    }
  }
  return static_cast<double>(values.size());
}

// An amount of each run; 0 where a run does not have the function.
template <class Amount>
std::vector<double> OfRuns(std::span<const Side> runs, const Amount& amount) {
  std::vector<double> amounts;
  amounts.reserve(runs.size());
  for (const Side& run : runs) amounts.push_back(run.PerUnit(amount(run)));
  return amounts;
}

struct Pair {
  double base = 0, now = 0;
};

// `own_errors` are of each side by its own amount, `other_errors` by the other side's.
AmountChange ChangeBetween(Pair amounts, Pair own_errors, Pair other_errors, RunSpread spread) {
  const double error = std::hypot(own_errors.base, own_errors.now);
  return {.change = amounts.now - amounts.base,
          .error = error,
          .chance_error = std::max(error, std::hypot(other_errors.base, other_errors.now)),
          .spread = spread};
}

}  // namespace

absl::StatusOr<Side> Side::Of(const FilteredProfile& profile, std::string_view per) {
  Side side{.sum = profile.sum,
            .whole = profile.whole,
            .units = UnitsOf(profile, per),
            .samples = profile.samples};
  if (!(side.units > 0) || !std::isfinite(side.units)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--per ", std::string(per), ": not both profiles have it"));
  }
  const std::vector<FunctionCost> costs =
      FunctionCosts(profile.profile(), profile.lines, profile.column);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].self == 0 && costs[i].total == 0) continue;
    side.functions.emplace(profile.lines.functions()[i].name, costs[i]);
  }
  return side;
}

Changes::Changes(const Side& base, const Side& now, bool by_total, std::span<const Side> base_runs,
                 std::span<const Side> now_runs) {
  const auto part = [by_total](const FunctionCost& cost) {
    return by_total ? cost.total : cost.self;
  };
  const auto of = [](const Side& side, const std::string& name) {
    const auto found = side.functions.find(name);
    return found == side.functions.end() ? FunctionCost{} : found->second;
  };
  // An empty side has missed what the other has: it is judged as if its samples were as those.
  const Side& base_weights = base.is_empty() ? now : base;
  const Side& now_weights = now.is_empty() ? base : now;
  const auto add = [&](const std::string& name) {
    FunctionChange row{.name = name, .base = of(base, name), .now = of(now, name)};
    if (part(row.base) == 0 && part(row.now) == 0) return;
    row.base_amount = base.PerUnit(part(row.base));
    row.now_amount = now.PerUnit(part(row.now));
    const auto amount = [&](const Side& run) { return part(of(run, name)); };
    row.change = ChangeBetween(
        {row.base_amount, row.now_amount},
        {base.ErrorOf(row.base_amount, base_weights), now.ErrorOf(row.now_amount, now_weights)},
        {base.ErrorOf(row.now_amount, base_weights), now.ErrorOf(row.base_amount, now_weights)},
        RunSpread::Of(OfRuns(base_runs, amount), OfRuns(now_runs, amount)));
    rows_.push_back(std::move(row));
  };
  for (const auto& [name, cost] : base.functions) add(name);
  for (const auto& [name, cost] : now.functions) {
    if (!base.functions.contains(name)) add(name);
  }
  const auto sum = [](const Side& run) { return run.sum; };
  total_.name = kTotalName;
  total_.base_amount = base.PerUnit(base.sum);
  total_.now_amount = now.PerUnit(now.sum);
  total_.change = ChangeBetween({total_.base_amount, total_.now_amount},
                                {base.ErrorOfSum(total_.base_amount, base_weights),
                                 now.ErrorOfSum(total_.now_amount, now_weights)},
                                {base.ErrorOfSum(total_.now_amount, base_weights),
                                 now.ErrorOfSum(total_.base_amount, now_weights)},
                                RunSpread::Of(OfRuns(base_runs, sum), OfRuns(now_runs, sum)));
  AllowForSpread();
}

void Changes::AllowForSpread() {
  if (total_.change.spread.degrees == 0) return;
  double by_spread = 0, by_samples = 0;
  for (const FunctionChange& row : rows_) {
    by_spread += row.change.spread.error * row.change.spread.error;
    by_samples += row.change.error * row.change.error;
  }
  const double dispersion = by_samples > 0 ? std::max(1.0, by_spread / by_samples) : 1;
  const auto widen = [dispersion](AmountChange& change) {
    change.error = std::max(change.error * std::sqrt(dispersion), change.spread.error);
    change.chance_error *= std::sqrt(dispersion);
  };
  widen(total_.change);
  for (FunctionChange& row : rows_) widen(row.change);
}

bool Changes::has_errors() const { return !std::isnan(total_.change.error); }

void Changes::Judge(double errors) {
  total_.change.is_significant = total_.change.IsBeyondChance(errors);
  for (FunctionChange& row : rows_) row.change.is_significant = row.change.IsBeyondChance(errors);
  // Names decide among equals.
  std::ranges::sort(rows_, [](const FunctionChange& a, const FunctionChange& b) {
    const auto key = [](const FunctionChange& row) {
      return std::pair(row.change.is_significant, std::abs(row.change.change));
    };
    return key(a) != key(b) ? key(a) > key(b) : a.name < b.name;
  });
}

}  // namespace strobe::internal
