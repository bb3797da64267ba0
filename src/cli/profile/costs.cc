#include "costs.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "profile_builder.h"
#include "strobe/core/share_error.h"

namespace strobe::internal {

std::vector<FunctionCost> FunctionCosts(const Profile& profile, const FunctionLines& lines,
                                        std::size_t column) {
  std::vector<FunctionCost> costs(lines.functions().size());
  // The last row that each function was counted in.
  std::vector<std::size_t> counted_in(costs.size(), profile.samples.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[column];
    if (value == 0) continue;
    const std::uint32_t leaf = profile.samples[i].stack;
    if (leaf != 0) {
      FunctionCost& cost = costs[lines.Of(profile.stacks[leaf].frame)[0].function];
      cost.self = SaturatedSum(cost.self, value);
    }
    for (std::uint32_t node = leaf; node != 0; node = profile.stacks[node].parent) {
      for (const FunctionLines::Line& line : lines.Of(profile.stacks[node].frame)) {
        if (counted_in[line.function] == i) continue;
        counted_in[line.function] = i;
        costs[line.function].total = SaturatedSum(costs[line.function].total, value);
      }
    }
  }
  return costs;
}

std::int64_t ColumnSum(const Profile& profile, std::size_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    sum = SaturatedSum(sum, profile.Values(i)[column]);
  return sum;
}

double SamplesBehind(const Profile& profile, std::size_t column) {
  const auto counts = std::ranges::find(profile.value_types, ValueType{"samples", "count"});
  if (counts == profile.value_types.end()) return 0;
  const auto count = static_cast<std::size_t>(counts - profile.value_types.begin());
  // The samples are those of CPU time, or of the only other type.
  if (column != count && profile.value_types[column].type != "cpu" &&
      profile.value_types.size() != 2)
    return 0;
  absl::flat_hash_map<std::int64_t, std::pair<double, double>> threads;  // amount, samples
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    auto& [amount, samples] = threads[profile.Labels(i).Number(kThreadIdLabel)];
    amount += static_cast<double>(profile.Values(i)[column]);
    samples += static_cast<double>(profile.Values(i)[count]);
  }
  EffectiveSamples effective;
  for (const auto& [id, thread] : threads) effective.AddThread(thread.first, thread.second);
  return effective.count();
}

double ShareOf(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

ShareChange ChangeOf(double share, double samples, double base_share, double base_samples) {
  ShareChange result{.change = share - base_share};
  result.error = std::hypot(StandardErrorOfShare(share, samples),
                            StandardErrorOfShare(base_share, base_samples));
  result.is_significant = std::abs(result.change) > kSignificantErrors * result.error;
  return result;
}

}  // namespace strobe::internal
