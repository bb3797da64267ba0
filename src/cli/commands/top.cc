// top and peek: tables of functions.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "../../encode/json_writer.h"
#include "absl/strings/str_cat.h"
#include "command.h"
#include "json_numbers.h"
#include "strobe/base/amounts.h"

namespace strobe::internal {
namespace {

std::string ShareOfSubject(std::int64_t part, const FilteredProfile& subject) {
  const double share = ShareOf(part, subject.whole);
  return ShareText(share, subject.samples.StandardErrorOf(share));
}

std::size_t Shown(const Request& request, std::size_t all) {
  return request.rows == 0 ? all : std::min(request.rows, all);
}

constexpr std::size_t kErrorColumns = 16;  // of a share with its error
constexpr std::size_t kTopColumns = 2 * (kAmountColumns + kErrorColumns) + 2;

std::string Cells(const FunctionCost& cost, const FilteredProfile& subject) {
  const std::string_view unit = subject.type().unit;
  return absl::StrCat(Right(AmountText(cost.self, unit), kAmountColumns),
                      Right(ShareOfSubject(cost.self, subject), kErrorColumns),
                      Right(AmountText(cost.total, unit), kAmountColumns),
                      Right(ShareOfSubject(cost.total, subject), kErrorColumns), "  ");
}

std::string TableHead(const Printer& printer) {
  return printer.Bold(absl::StrCat(Right("self", kAmountColumns), Right("share", kErrorColumns),
                                   Right("total", kAmountColumns), Right("share", kErrorColumns),
                                   "  function")) +
         "\n";
}

void JsonFunction(JsonWriter& json, const FilteredProfile& subject, std::uint32_t function,
                  const FunctionCost& cost) {
  json.BeginObject();
  json.Member("function", subject.lines.functions()[function].name);
  json.Member("file", subject.lines.functions()[function].file);
  json.Member("self", cost.self);
  json.Member("total", cost.total);
  const double share = ShareOf(cost.self, subject.whole);
  JsonShare(json, "self_share", share);
  JsonShare(json, "self_error", subject.samples.StandardErrorOf(share));
  json.EndObject();
}

// What the callers and callees of a function cost.
struct Neighbours {
  std::map<std::uint32_t, std::int64_t> callers, callees;
};

// Counts each caller, and each callee, once a row.
Neighbours FindNeighbours(const FilteredProfile& subject, std::uint32_t function) {
  const Profile& profile = subject.profile();
  Neighbours result;
  std::vector<std::uint32_t> callers;
  std::vector<std::uint32_t> callees;
  const auto add = [](std::vector<std::uint32_t>& numbers, std::int64_t value,
                      std::map<std::uint32_t, std::int64_t>& sums) {
    std::ranges::sort(numbers);
    // clang 14 has no std::ranges::unique with libstdc++ 12.
    const auto end = std::unique(numbers.begin(), numbers.end());
    for (auto number = numbers.begin(); number != end; ++number)
      sums[*number] = SaturatedSum(sums[*number], value);
    numbers.clear();
  };
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[subject.column];
    std::uint32_t callee = kNone;
    for (std::uint32_t node = value == 0 ? 0 : profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      for (const FunctionLines::Line& line : subject.lines.Of(profile.stacks[node].frame)) {
        if (line.function == function && callee != kNone) callees.push_back(callee);
        if (callee == function) callers.push_back(line.function);
        callee = line.function;
      }
    }
    add(callers, value, result.callers);
    add(callees, value, result.callees);
  }
  return result;
}

using Neighbour = std::pair<std::uint32_t, std::int64_t>;
std::vector<Neighbour> Sorted(const std::map<std::uint32_t, std::int64_t>& sums) {
  std::vector<Neighbour> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const Neighbour& one) { return Magnitude(one.second); });
  return sorted;
}

void PrintNeighbours(std::string& text, const char* title,
                     const std::map<std::uint32_t, std::int64_t>& sums,
                     const FilteredProfile& subject, const Request& request,
                     const Printer& printer) {
  const std::vector<Neighbour> sorted = Sorted(sums);
  absl::StrAppend(&text, printer.Dim(title), "\n");
  if (sorted.empty()) absl::StrAppend(&text, "  none\n");
  for (std::size_t i = 0; i < Shown(request, sorted.size()); ++i) {
    const auto [function, value] = sorted[i];
    absl::StrAppend(
        &text, Right(AmountText(value, subject.type().unit), kAmountColumns),
        Right(ShareOfSubject(value, subject), kErrorColumns), "  ",
        printer.Cut(subject.lines.functions()[function].name, kAmountColumns + kErrorColumns + 2),
        "\n");
  }
}

void JsonNeighbours(JsonWriter& json, std::string_view key,
                    const std::map<std::uint32_t, std::int64_t>& sums,
                    const FilteredProfile& subject) {
  json.Key(key);
  json.BeginArray();
  for (const auto& [function, value] : Sorted(sums)) {
    json.BeginObject();
    json.Member("function", subject.lines.functions()[function].name);
    json.Member("total", value);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

Text TopCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  const std::vector<FunctionCost> costs =
      FunctionCosts(subject.profile(), subject.lines, subject.column);
  const std::vector<std::uint32_t> order = LargestCosts(costs, request.by_total);
  const std::size_t shown = Shown(request, order.size());
  if (request.json) {
    JsonWriter json;
    JsonHead(json, subject);
    json.Key("functions");
    json.BeginArray();
    for (std::size_t i = 0; i < shown; ++i) JsonFunction(json, subject, order[i], costs[order[i]]);
    json.EndArray();
    json.EndObject();
    return json.Take() + "\n";
  }
  std::string text = Heading(subject, printer) + TableHead(printer);
  for (std::size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, Cells(costs[order[i]], subject),
                    printer.Cut(subject.lines.functions()[order[i]].name, kTopColumns), "\n");
  }
  if (shown < order.size()) {
    absl::StrAppend(
        &text, printer.Dim(absl::StrCat(order.size() - shown, " more functions (-n 0 shows all)")),
        "\n");
  }
  return text;
}

Text PeekCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  const absl::StatusOr<MatchingFunctions> found = FindMatching(subject, request);
  if (!found.ok()) return found.status();
  JsonWriter json;
  JsonHead(json, subject);
  json.Key("functions");
  json.BeginArray();
  std::string text = Heading(subject, printer);
  for (const std::uint32_t function : found->numbers) {
    const Neighbours neighbours = FindNeighbours(subject, function);
    json.BeginObject();
    json.Member("function", subject.lines.functions()[function].name);
    json.Member("self", found->costs[function].self);
    json.Member("total", found->costs[function].total);
    JsonNeighbours(json, "callers", neighbours.callers, subject);
    JsonNeighbours(json, "callees", neighbours.callees, subject);
    json.EndObject();
    absl::StrAppend(&text, "\n", TableHead(printer), Cells(found->costs[function], subject),
                    printer.Bold(subject.lines.functions()[function].name), "\n");
    PrintNeighbours(text, "called by", neighbours.callers, subject, request, printer);
    PrintNeighbours(text, "calls", neighbours.callees, subject, request, printer);
  }
  text += found->more_text;
  json.EndArray();
  json.EndObject();
  return request.json ? json.Take() + "\n" : text;
}

}  // namespace strobe::internal
