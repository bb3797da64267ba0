#include "symbol_order.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// Functions that stand together.
struct Group {
  std::vector<std::size_t> functions;
  double amount = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] double density() const {
    return amount / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  }
};

class Layout {
 public:
  explicit Layout(const CodeSamples& code) {
    std::vector<std::size_t> function_of;
    for (const CodeSamples::Place& place : code.places) {
      const std::size_t function = Number(place.symbol);
      function_of.push_back(function);
      groups_[function].amount += static_cast<double>(place.amount);
      groups_[function].bytes = place.symbol_bytes;
    }
    for (const CodeSamples::Call& call : code.calls) {
      const std::size_t caller = function_of[call.caller];
      const std::size_t callee = function_of[call.callee];
      if (caller != callee) callers_[callee][caller] += call.amount;
    }
  }

  std::string Text() {
    std::vector<std::size_t> order(names_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto amounts = [this](std::size_t a, std::size_t b) {
      return groups_[a].amount > groups_[b].amount;
    };
    std::ranges::stable_sort(order, amounts);
    group_of_.resize(names_.size());
    std::iota(group_of_.begin(), group_of_.end(), std::size_t{0});
    for (const std::size_t function : order) PutBehindCaller(function);
    std::ranges::stable_sort(
        groups_, [](const Group& a, const Group& b) { return a.density() > b.density(); });
    std::string text;
    for (const Group& group : groups_) {
      for (const std::size_t function : group.functions) {
        if (!names_[function].empty()) absl::StrAppend(&text, names_[function], "\n");
      }
    }
    return text;
  }

 private:
  std::size_t Number(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, names_.size());
    if (is_new) {
      groups_.push_back({.functions = {names_.size()}});
      names_.push_back(name);
    }
    return found->second;
  }

  void PutBehindCaller(std::size_t function) {
    const auto callers = callers_.find(function);
    if (callers == callers_.end() || names_[function].empty()) return;
    const auto best = std::ranges::max_element(callers->second, {},
                                               [](const auto& caller) { return caller.second; });
    Group& to = groups_[group_of_[best->first]];
    Group& from = groups_[group_of_[function]];
    if (&to == &from || to.bytes + from.bytes > kMaxGroupBytes || names_[best->first].empty())
      return;
    for (const std::size_t moved : from.functions) group_of_[moved] = group_of_[best->first];
    to.functions.insert(to.functions.end(), from.functions.begin(), from.functions.end());
    to.amount += from.amount;
    to.bytes += from.bytes;
    from = {};
  }

  absl::flat_hash_map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
  std::vector<Group> groups_;  // at first one for each function
  std::vector<std::size_t> group_of_;
  std::map<std::size_t, std::map<std::size_t, std::int64_t>> callers_;  // amounts of calls
};

}  // namespace

std::string SymbolOrderText(const CodeSamples& code) { return Layout(code).Text(); }

}  // namespace strobe::internal
