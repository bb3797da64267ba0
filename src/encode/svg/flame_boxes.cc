#include "flame_boxes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "absl/status/status.h"

namespace strobe::internal {

absl::StatusOr<FlameBoxes> FlameBoxes::Make(const ProfileView& view, std::size_t column,
                                            const Limits& limits) {
  FlameBoxes result;
  if (absl::Status status = result.AddStacks(view, column); !status.ok()) return status;
  result.AddMarks();
  result.Place(result.LeastAmount(limits), limits.max_levels);
  return result;
}

absl::Status FlameBoxes::AddStacks(const ProfileView& view, std::size_t column) {
  const Profile& profile = view.profile();
  const auto sites = code_.AddFrames(view);
  std::vector<double> amounts(profile.stacks.size());
  for (std::size_t i = 0; i < profile.samples.size() && column < profile.value_types.size(); ++i) {
    amounts[profile.samples[i].stack] +=
        static_cast<double>(std::max<std::int64_t>(profile.Values(i)[column], 0));
  }
  // Stacks without any of this value type are not in the tree.
  std::vector<bool> is_used(amounts.size());
  for (std::size_t i = amounts.size(); i-- > 1;) {
    is_used[i] = is_used[i] || amounts[i] > 0;
    if (is_used[i]) is_used[profile.stacks[i].parent] = true;
  }
  std::vector<std::uint32_t> nodes(amounts.size());
  for (std::size_t i = 1; i < amounts.size(); ++i) {
    if (!is_used[i]) continue;
    nodes[i] = nodes[profile.stacks[i].parent];
    for (const std::uint32_t number : sites[profile.stacks[i].frame]) {
      const PageSite& site = code_.sites()[number];
      nodes[i] = tree_.Child(nodes[i], 2 * site.function + (site.is_inlined ? 1 : 0));
    }
    if (tree_.is_full())
      return absl::ResourceExhaustedError("the profile has too many stacks for a picture");
  }
  self_.resize(tree_.nodes().size());
  for (std::size_t i = 0; i < amounts.size(); ++i) self_[nodes[i]] += amounts[i];
  sums_ = self_;
  for (std::size_t node = sums_.size() - 1; node > 0; --node)
    sums_[tree_.nodes()[node].parent] += sums_[node];
  total_ = sums_[0];
  return absl::OkStatus();
}

void FlameBoxes::AddMarks() {
  std::map<std::string_view, double> amounts;
  for (std::size_t node = 1; node < self_.size(); ++node) {
    const PageFunction& function = code_.functions()[tree_.nodes()[node].site / 2];
    if (function.is_pseudo && self_[node] > 0) amounts[Text(function.name)] += self_[node];
  }
  marks_.assign(amounts.begin(), amounts.end());
  std::ranges::stable_sort(marks_, std::greater(), [](const auto& mark) { return mark.second; });
}

double FlameBoxes::LeastAmount(const Limits& limits) const {
  const double least = total_ * limits.least_share;
  if (sums_.size() - 1 <= limits.max_boxes) return least;
  std::vector<double> sums(sums_.begin() + 1, sums_.end());
  const auto last = sums.begin() + static_cast<std::ptrdiff_t>(limits.max_boxes);
  std::nth_element(sums.begin(), last, sums.end(), std::greater());
  // Those that are as wide as the first that is left out are left out, too.
  return std::max(least, std::nextafter(*last, total_ + 1));
}

FlameBoxes::Callees FlameBoxes::SortedCallees() const {
  const std::vector<PageTree::Node>& nodes = tree_.nodes();
  Callees callees;
  callees.nodes.resize(nodes.size() - 1);
  std::iota(callees.nodes.begin(), callees.nodes.end(), 1U);
  std::ranges::sort(callees.nodes, [&](std::uint32_t a, std::uint32_t b) {
    if (nodes[a].parent != nodes[b].parent) return nodes[a].parent < nodes[b].parent;
    return sums_[a] != sums_[b] ? sums_[a] > sums_[b] : a < b;
  });
  callees.begins.resize(nodes.size() + 1);
  for (const std::uint32_t node : callees.nodes) ++callees.begins[nodes[node].parent + 1];
  std::partial_sum(callees.begins.begin(), callees.begins.end(), callees.begins.begin());
  return callees;
}

void FlameBoxes::Place(double least_amount, std::size_t max_levels) {
  const Callees callees = SortedCallees();
  std::vector<std::size_t> counts(sums_.size(), 1);  // of the nodes from a node on
  for (std::size_t node = counts.size() - 1; node > 0; --node)
    counts[tree_.nodes()[node].parent] += counts[node];
  struct Open {
    std::uint32_t node, level;
    double begin;
  };
  std::vector<Open> open = {{0, 0, 0}};
  while (!open.empty()) {
    const Open caller = open.back();
    open.pop_back();
    double begin = caller.begin;
    FlameBox rest{.level = caller.level, .functions = 0};
    for (std::uint32_t i = callees.begins[caller.node]; i < callees.begins[caller.node + 1]; ++i) {
      const std::uint32_t node = callees.nodes[i];
      if (sums_[node] < least_amount || caller.level >= max_levels) {
        rest.amount += sums_[node];
        rest.functions += counts[node];
        continue;
      }
      const std::uint32_t site = tree_.nodes()[node].site;
      boxes_.push_back({site / 2, site % 2 != 0, caller.level, begin, sums_[node], self_[node], 1});
      open.push_back({node, caller.level + 1, begin});
      begin += sums_[node];
    }
    rest.begin = begin;
    if (rest.functions != 0) boxes_.push_back(rest);
    const bool has_callees = callees.begins[caller.node] != callees.begins[caller.node + 1];
    if (has_callees) levels_ = std::max<std::size_t>(levels_, caller.level + 1);
  }
}

}  // namespace strobe::internal
