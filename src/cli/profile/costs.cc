#include "costs.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "strobe/base/amounts.h"
#include "strobe/core/stack.h"

namespace strobe::internal {

std::vector<FunctionCost> FunctionCosts(const Profile& profile, const FunctionLines& lines,
                                        std::size_t column) {
  std::vector<FunctionCost> costs(lines.functions().size());
  // The last row that each function was counted in.
  std::vector<std::size_t> counted_in(costs.size(), profile.samples.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[column];
    if (value == 0) continue;
    bool is_leaf = true;
    VisitFunctions(profile, lines, i, [&](std::uint32_t function) {
      FunctionCost& cost = costs[function];
      if (std::exchange(is_leaf, false)) cost.self = SaturatedSum(cost.self, value);
      if (std::exchange(counted_in[function], i) != i) cost.total = SaturatedSum(cost.total, value);
    });
  }
  return costs;
}

std::vector<std::uint32_t> LargestCosts(const std::vector<FunctionCost>& costs, bool by_total) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < costs.size(); ++i) {
    if (costs[i].self != 0 || costs[i].total != 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t i) {
      const std::uint64_t self = Magnitude(costs[i].self);
      const std::uint64_t total = Magnitude(costs[i].total);
      return by_total ? std::pair(total, self) : std::pair(self, total);
    };
    return key(a) > key(b);
  });
  return order;
}

std::int64_t ColumnSum(const Profile& profile, std::size_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    sum = SaturatedSum(sum, profile.Values(i)[column]);
  return sum;
}

std::int64_t ColumnMagnitude(const Profile& profile, std::size_t column) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t sum = 0;  // two of at most kMost each fit
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    sum = std::min(sum + std::min(Magnitude(profile.Values(i)[column]), kMost), kMost);
  return static_cast<std::int64_t>(sum);
}

namespace {

// True if no sample says whose the row's amount is.
bool IsUnknown(const Profile& profile, const ProfileSample& sample) {
  if (sample.stack == 0) return false;
  const Frame& leaf = profile.frames[profile.stacks[sample.stack].frame];
  return leaf.is_pseudo() && (leaf.address == static_cast<Address>(PseudoFrame::kLost) ||
                              leaf.address == static_cast<Address>(PseudoFrame::kResidual));
}

// Of a profile of several processes, as a profiler and as pprof have the label; 0 of others.
std::int64_t ProcessOf(const LabelSet& labels) {
  return std::max(labels.Number("process id"), labels.Number("process_id"));
}

}  // namespace

EffectiveSamples SamplesBehind(const Profile& profile, std::size_t column) {
  EffectiveSamples effective;
  const std::vector<ValueType>& types = profile.value_types;
  const std::string own = std::string(types[column].type) + kSampleCountSuffix;
  auto counts = std::ranges::find(types, ValueType{own, "count"});
  const bool has_own = counts != types.end();
  if (!has_own) counts = std::ranges::find(types, ValueType{"samples", "count"});
  if (counts == types.end()) return effective;
  const auto count = static_cast<std::size_t>(counts - types.begin());
  if (!has_own && column != count && column != count + 1) return effective;
  absl::flat_hash_map<std::pair<std::int64_t, std::int64_t>, std::pair<double, double>> threads;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const auto value = static_cast<double>(profile.Values(i)[column]);
    if (value == 0) continue;
    if (IsUnknown(profile, profile.samples[i])) {
      effective.AddUnknown(value);
      continue;
    }
    const LabelSet& labels = profile.Labels(i);
    auto& [amount, samples] = threads[{ProcessOf(labels), labels.Number(kThreadIdLabel)}];
    amount += value;
    samples += static_cast<double>(profile.Values(i)[count]);
  }
  for (const auto& [id, thread] : threads) effective.AddThread(thread.first, thread.second);
  return effective;
}

double ShareOf(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace strobe::internal
