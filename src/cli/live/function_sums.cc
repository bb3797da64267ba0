#include "function_sums.h"

#include <algorithm>

#include "perf/perf_threads.h"
#include "strobe/base/amounts.h"
#include "strobe/core/stack.h"

namespace strobe::internal {
namespace {

// Samples that found no room.
std::uint64_t LostSamples(const Profile& profile) {
  std::int64_t lost = 0;
  const auto counts = std::ranges::find(profile.value_types, ValueType{"samples", "count"});
  if (counts == profile.value_types.end()) return 0;
  const auto column = static_cast<std::size_t>(counts - profile.value_types.begin());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::uint32_t stack = profile.samples[i].stack;
    if (stack == 0) continue;
    const Frame& leaf = profile.frames[profile.stacks[stack].frame];
    if (leaf.is_pseudo() && leaf.address == static_cast<Address>(PseudoFrame::kLost))
      lost = SaturatedSum(lost, profile.Values(i)[column]);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(lost, 0));
}

}  // namespace

std::uint32_t FunctionSums::Number(const std::string& function, const std::string& process) {
  constexpr std::size_t kTables = 128;  // what finds a row, beside its texts
  const auto next = static_cast<std::uint32_t>(rows_.size());
  const std::pair key(function, process);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  const std::size_t bytes = 2 * (sizeof(Row) + function.size() + process.size()) + kTables;
  if (bytes_ + bytes > max_bytes_ && function != kOthers) return Number(std::string(kOthers), {});
  bytes_ += bytes;
  numbers_.emplace(key, next);
  rows_.push_back({function, process, {}});
  return next;
}

void FunctionSums::Add(const FilteredProfile& subject) {
  const Profile& profile = subject.profile();
  const std::string none;
  // By the numbers of labels and function: names are compared once for each.
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  // The last row of the profile that each row was counted in.
  std::vector<std::size_t> counted_in(rows_.size(), profile.samples.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[subject.column];
    if (value == 0) continue;
    const std::uint32_t labels = by_process_ ? profile.samples[i].labels : 0;
    const std::string& process =
        by_process_ ? profile.Labels(i).Text(PerfThreads::kProcessNameLabel) : none;
    bool is_leaf = true;
    VisitFunctions(profile, subject.lines, i, [&](std::uint32_t function) {
      const auto [place, is_new] = numbers.try_emplace({labels, function}, 0);
      if (is_new) place->second = Number(subject.lines.functions()[function].name, process);
      const std::uint32_t number = place->second;
      counted_in.resize(rows_.size(), profile.samples.size());
      FunctionCost& cost = rows_[number].cost;
      if (std::exchange(is_leaf, false)) cost.self = SaturatedSum(cost.self, value);
      if (std::exchange(counted_in[number], i) != i) cost.total = SaturatedSum(cost.total, value);
    });
  }
  whole_ = SaturatedSum(whole_, subject.whole);
  samples_ += static_cast<std::uint64_t>(subject.samples.taken());
  lost_ += LostSamples(profile);
}

std::vector<std::uint32_t> FunctionSums::Largest(bool by_total, const Pattern& pattern) const {
  std::vector<FunctionCost> costs;
  costs.reserve(rows_.size());
  for (const Row& row : rows_) costs.push_back(row.cost);
  std::vector<std::uint32_t> order = LargestCosts(costs, by_total);
  std::erase_if(order, [&](std::uint32_t i) { return !pattern.Matches(rows_[i].function); });
  return order;
}

}  // namespace strobe::internal
