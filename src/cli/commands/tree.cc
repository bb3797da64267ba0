// tree: the calls from the roots down.
#include <algorithm>
#include <utility>
#include <vector>

#include "../../encode/json_writer.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "command.h"
#include "strobe/base/amounts.h"

namespace strobe::internal {
namespace {

// A node stands for all stacks that begin with the same functions.
struct CallNode {
  std::uint32_t function = 0;
  std::int64_t self = 0;
  std::int64_t total = 0;
  std::vector<std::uint32_t> callees{};  // the largest first
};

class CallTree {
 public:
  // Deeper calls count for the last one.
  static constexpr std::size_t kMaxDepth = 2048;

  explicit CallTree(const FilteredProfile& subject) {
    const Profile& profile = subject.profile();
    nodes_.push_back({});
    // Of each node of the profile: the node here, and its depth. Parents stand before children.
    std::vector<std::pair<std::uint32_t, std::size_t>> places(profile.stacks.size());
    for (std::size_t i = 1; i < places.size(); ++i) {
      auto place = places[profile.stacks[i].parent];
      const auto lines = subject.lines.Of(profile.stacks[i].frame);
      for (std::size_t at = lines.size(); at > 0 && place.second < kMaxDepth; --at)
        place = {Callee(place.first, lines[at - 1].function), place.second + 1};
      places[i] = place;
    }
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      CallNode& node = nodes_[places[profile.samples[i].stack].first];
      node.self = SaturatedSum(node.self, profile.Values(i)[subject.column]);
    }
    AddUp();
  }

  [[nodiscard]] const std::vector<CallNode>& nodes() const { return nodes_; }

 private:
  std::uint32_t Callee(std::uint32_t caller, std::uint32_t function) {
    const auto next = static_cast<std::uint32_t>(nodes_.size());
    const auto [place, is_new] = numbers_.try_emplace(std::pair(caller, function), next);
    if (is_new) {
      nodes_.push_back({.function = function});
      callers_.push_back(caller);
    }
    return place->second;
  }

  void AddUp() {
    for (std::uint32_t i = static_cast<std::uint32_t>(nodes_.size()); i-- > 0;) {
      CallNode& node = nodes_[i];
      node.total = SaturatedSum(node.total, node.self);
      std::ranges::stable_sort(node.callees, [this](std::uint32_t a, std::uint32_t b) {
        return Magnitude(nodes_[a].total) > Magnitude(nodes_[b].total);
      });
      if (i == 0) break;
      CallNode& caller = nodes_[callers_[i - 1]];
      caller.total = SaturatedSum(caller.total, node.total);
      caller.callees.push_back(i);
    }
  }

  std::vector<CallNode> nodes_;
  std::vector<std::uint32_t> callers_;  // of each node but the root
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

bool IsShown(const CallNode& node, const FilteredProfile& subject, const Request& request) {
  const double share = ShareOf(node.total, subject.whole);
  return node.total != 0 && (share < 0 ? -share : share) * 100 >= request.min_percent;
}

void PrintTree(std::string& text, const CallTree& tree, const FilteredProfile& subject,
               const Request& request, const Printer& printer) {
  // A callee that is alone and has nearly all of its caller's total does not stand further right.
  constexpr double kNearlyAll = 0.999;
  std::vector<std::pair<std::uint32_t, std::size_t>> waiting = {{0, 0}};
  while (!waiting.empty()) {
    const auto [number, indent] = waiting.back();
    waiting.pop_back();
    const CallNode& node = tree.nodes()[number];
    if (number != 0) {
      const std::size_t used = 2 * kAmountColumns + kShareColumns + 2 + indent;
      absl::StrAppend(&text, Right(AmountText(node.total, subject.type().unit), kAmountColumns),
                      Right(ShareText(ShareOf(node.total, subject.whole), NAN), kShareColumns),
                      Right(AmountText(node.self, subject.type().unit), kAmountColumns), "  ",
                      std::string(indent, ' '),
                      printer.Cut(subject.lines.functions()[node.function].name, used), "\n");
    }
    std::size_t next_indent = number == 0 ? 0 : indent + 1;
    if (!node.callees.empty() && number != 0 &&
        ShareOf(tree.nodes()[node.callees[0]].total, node.total) >= kNearlyAll)
      next_indent = indent;
    for (std::size_t i = node.callees.size(); i-- > 0;) {
      if (IsShown(tree.nodes()[node.callees[i]], subject, request))
        waiting.emplace_back(node.callees[i], next_indent);
    }
  }
}

// Nested as the calls are. A text instead of recursion closes each node.
void JsonTree(JsonWriter& json, const CallTree& tree, const FilteredProfile& subject,
              const Request& request) {
  constexpr std::uint32_t kClose = 0xFFFFFFFF;
  std::vector<std::uint32_t> waiting(tree.nodes()[0].callees.rbegin(),
                                     tree.nodes()[0].callees.rend());
  json.Key("calls");
  json.BeginArray();
  while (!waiting.empty()) {
    const std::uint32_t number = waiting.back();
    waiting.pop_back();
    if (number == kClose) {
      json.EndArray();
      json.EndObject();
      continue;
    }
    const CallNode& node = tree.nodes()[number];
    if (!IsShown(node, subject, request)) continue;
    json.BeginObject();
    json.Member("function", subject.lines.functions()[node.function].name);
    json.Member("self", node.self);
    json.Member("total", node.total);
    json.Key("calls");
    json.BeginArray();
    waiting.push_back(kClose);
    waiting.insert(waiting.end(), node.callees.rbegin(), node.callees.rend());
  }
  json.EndArray();
}

}  // namespace

Text TreeCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  const CallTree tree(subject);
  if (request.json) {
    JsonWriter json;
    json.BeginObject();
    json.Member("type", subject.type().type);
    json.Member("unit", subject.type().unit);
    json.Member("sum", subject.sum);
    JsonTree(json, tree, subject, request);
    json.EndObject();
    return json.Take() + "\n";
  }
  std::string text = Heading(subject, printer);
  absl::StrAppend(
      &text, printer.Bold("       total    share        self  function, callees below callers"),
      "\n");
  PrintTree(text, tree, subject, request, printer);
  return text;
}

}  // namespace strobe::internal
