// top, peek and diff: tables of functions.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "../../encode/json_writer.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "command.h"
#include "profile/profile_builder.h"
#include "strobe/core/share_error.h"
#include "ui/pattern.h"

namespace strobe::internal {
namespace {

std::string ShareOfSubject(std::int64_t part, const FilteredProfile& subject) {
  const double share = ShareOf(part, subject.sum);
  return ShareText(share, StandardErrorOfShare(share, subject.samples));
}

void JsonShare(JsonWriter& json, std::string_view key, double share) {
  json.Key(key);
  json.Raw(std::isfinite(share) ? absl::StrFormat("%.9g", share) : "null");
}

void JsonHead(JsonWriter& json, const FilteredProfile& subject) {
  json.BeginObject();
  json.Member("type", subject.type().type);
  json.Member("unit", subject.type().unit);
  json.Member("sum", subject.sum);
  JsonShare(json, "samples", subject.samples);
}

// The numbers of functions that are not 0, those of the largest amounts first.
std::vector<std::uint32_t> Largest(const std::vector<FunctionCost>& costs, bool by_total) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < costs.size(); ++i) {
    if (costs[i].self != 0 || costs[i].total != 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t i) {
      return by_total ? std::pair(costs[i].total, costs[i].self)
                      : std::pair(costs[i].self, costs[i].total);
    };
    return key(a) > key(b);
  });
  return order;
}

std::size_t Shown(const Request& request, std::size_t all) {
  return request.rows == 0 ? all : std::min(request.rows, all);
}

constexpr std::size_t kAmountColumns = 12;
constexpr std::size_t kShareColumns = 16;
constexpr std::size_t kTableColumns = 2 * (kAmountColumns + kShareColumns) + 2;

std::string Cells(const FunctionCost& cost, const FilteredProfile& subject) {
  const std::string_view unit = subject.type().unit;
  return absl::StrCat(Right(AmountText(cost.self, unit), kAmountColumns),
                      Right(ShareOfSubject(cost.self, subject), kShareColumns),
                      Right(AmountText(cost.total, unit), kAmountColumns),
                      Right(ShareOfSubject(cost.total, subject), kShareColumns), "  ");
}

std::string TableHead(const Printer& printer) {
  return printer.Bold(absl::StrCat(Right("self", kAmountColumns), Right("share", kShareColumns),
                                   Right("total", kAmountColumns), Right("share", kShareColumns),
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
  const double share = ShareOf(cost.self, subject.sum);
  JsonShare(json, "self_share", share);
  JsonShare(json, "self_error", StandardErrorOfShare(share, subject.samples));
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
  std::ranges::stable_sort(sorted, std::greater(), &Neighbour::second);
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
        Right(ShareOfSubject(value, subject), kShareColumns), "  ",
        printer.Cut(subject.lines.functions()[function].name, kAmountColumns + kShareColumns + 2),
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

// A function in two profiles.
struct Compared {
  std::string name;
  FunctionCost base, now;
  ShareChange change;
};

std::vector<Compared> Compare(const FilteredProfile& base, const FilteredProfile& subject,
                              bool by_total) {
  absl::flat_hash_map<std::string, Compared> all;
  const auto add = [&](const FilteredProfile& one, FunctionCost Compared::*member) {
    const std::vector<FunctionCost> costs = FunctionCosts(one.profile(), one.lines, one.column);
    for (const std::uint32_t i : Largest(costs, by_total)) {
      Compared& compared = all[one.lines.functions()[i].name];
      compared.name = one.lines.functions()[i].name;
      compared.*member = costs[i];
    }
  };
  add(base, &Compared::base);
  add(subject, &Compared::now);
  std::vector<Compared> rows;
  for (auto& [name, row] : all) {
    const auto part = [&](const FunctionCost& cost) { return by_total ? cost.total : cost.self; };
    row.change = ChangeOf(ShareOf(part(row.now), subject.sum), subject.samples,
                          ShareOf(part(row.base), base.sum), base.samples);
    if (part(row.now) != 0 || part(row.base) != 0) rows.push_back(std::move(row));
  }
  // Significant changes first, then the largest, and names decide among equals.
  std::ranges::sort(rows, [](const Compared& a, const Compared& b) {
    const auto key = [](const Compared& row) {
      return std::pair(row.change.is_significant, std::abs(row.change.change));
    };
    return key(a) != key(b) ? key(a) > key(b) : a.name < b.name;
  });
  return rows;
}

std::string JsonDiff(const FilteredProfile& base, const FilteredProfile& subject,
                     const std::vector<Compared>& rows) {
  JsonWriter json;
  JsonHead(json, subject);
  json.Member("base_sum", base.sum);
  JsonShare(json, "base_samples", base.samples);
  json.Key("functions");
  json.BeginArray();
  for (const Compared& row : rows) {
    json.BeginObject();
    json.Member("function", row.name);
    json.Member("self", row.now.self);
    json.Member("total", row.now.total);
    json.Member("base_self", row.base.self);
    json.Member("base_total", row.base.total);
    JsonShare(json, "change", row.change.change);
    JsonShare(json, "error", row.change.error);
    json.Member("significant", row.change.is_significant);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace

Text TopCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  const std::vector<FunctionCost> costs =
      FunctionCosts(subject.profile(), subject.lines, subject.column);
  const std::vector<std::uint32_t> order = Largest(costs, request.by_total);
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
                    printer.Cut(subject.lines.functions()[order[i]].name, kTableColumns), "\n");
  }
  if (shown < order.size()) {
    absl::StrAppend(
        &text, printer.Dim(absl::StrCat(order.size() - shown, " more functions (-n 0 shows all)")),
        "\n");
  }
  return text;
}

Text PeekCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  const absl::StatusOr<Pattern> pattern = Pattern::Parse(request.pattern);
  if (!pattern.ok()) return pattern.status();
  const std::vector<FunctionCost> costs =
      FunctionCosts(subject.profile(), subject.lines, subject.column);
  std::vector<std::uint32_t> found = Largest(costs, true);
  std::erase_if(
      found, [&](std::uint32_t i) { return !pattern->Matches(subject.lines.functions()[i].name); });
  if (found.empty())
    return absl::NotFoundError(absl::StrCat("no function matches \"", request.pattern, "\""));
  // Each one is a pass over the profile.
  constexpr std::size_t kMaxPeeked = 20;
  const std::size_t left_out = found.size() - std::min(found.size(), kMaxPeeked);
  found.resize(found.size() - left_out);
  JsonWriter json;
  JsonHead(json, subject);
  json.Key("functions");
  json.BeginArray();
  std::string text = Heading(subject, printer);
  for (const std::uint32_t function : found) {
    const Neighbours neighbours = FindNeighbours(subject, function);
    json.BeginObject();
    json.Member("function", subject.lines.functions()[function].name);
    json.Member("self", costs[function].self);
    json.Member("total", costs[function].total);
    JsonNeighbours(json, "callers", neighbours.callers, subject);
    JsonNeighbours(json, "callees", neighbours.callees, subject);
    json.EndObject();
    absl::StrAppend(&text, "\n", TableHead(printer), Cells(costs[function], subject),
                    printer.Bold(subject.lines.functions()[function].name), "\n");
    PrintNeighbours(text, "called by", neighbours.callers, subject, request, printer);
    PrintNeighbours(text, "calls", neighbours.callees, subject, request, printer);
  }
  if (left_out > 0) absl::StrAppend(&text, "\n", left_out, " more functions match\n");
  json.EndArray();
  json.EndObject();
  return request.json ? json.Take() + "\n" : text;
}

Text DiffCommand(const FilteredProfile& base, const FilteredProfile& subject,
                 const Request& request, const Printer& printer) {
  if (base.type() != subject.type())
    return absl::InvalidArgumentError("the profiles have different value types: see --type");
  const std::vector<Compared> rows = Compare(base, subject, request.by_total);
  if (request.json) return JsonDiff(base, subject, rows);
  std::string text =
      absl::StrCat("base  ", Heading(base, printer), "now   ", Heading(subject, printer));
  if (base.samples == 0 || subject.samples == 0) {
    absl::StrAppend(&text, "The profiles do not count their samples, so no change has an error.\n");
  }
  absl::StrAppend(
      &text,
      printer.Bold(absl::StrCat(Right("base", 8), Right("now", 9), Right("change", kShareColumns),
                                "  function, by ", request.by_total ? "total" : "self", " share")),
      "\n");
  std::size_t shown = 0;
  std::size_t insignificant = 0;
  const auto part = [&](const FunctionCost& cost) {
    return request.by_total ? cost.total : cost.self;
  };
  for (const Compared& row : rows) {
    const bool has_error = !std::isnan(row.change.error);
    if (has_error && !row.change.is_significant) ++insignificant;
    if (shown == Shown(request, rows.size())) continue;
    ++shown;
    const std::string change = has_error && !row.change.is_significant
                                   ? "not significant"
                                   : ChangeText(row.change.change, row.change.error);
    const std::string cell = Right(change, kShareColumns);
    const std::string name = printer.Cut(row.name, 19 + kShareColumns);
    const bool is_marked = row.change.is_significant;
    absl::StrAppend(
        &text, Right(ShareText(ShareOf(part(row.base), base.sum), NAN), 8),
        Right(ShareText(ShareOf(part(row.now), subject.sum), NAN), 9),
        !is_marked ? cell : (row.change.change > 0 ? printer.Red(cell) : printer.Blue(cell)), "  ",
        name, "\n");
  }
  if (base.samples > 0 && subject.samples > 0) {
    absl::StrAppend(&text, rows.size() - insignificant, " changes are significant, ", insignificant,
                    " are not (a change is, if it is larger than 3 of its standard errors)\n");
  }
  return text;
}

}  // namespace strobe::internal
