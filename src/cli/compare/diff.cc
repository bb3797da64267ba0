// diff: how amounts and shares of functions differ between two profiles.
#include <algorithm>
#include <cmath>
#include <utility>

#include "../../encode/json_writer.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "changes.h"
#include "commands/json_numbers.h"
#include "compare.h"

namespace strobe::internal {
namespace {

// Two profiles, and the changes between them.
class Comparison {
 public:
  Comparison(const FilteredProfile& base, const FilteredProfile& now, double base_units,
             double now_units, Changes changes, const Request& request)
      : base_(base),
        now_(now),
        base_units_(base_units),
        now_units_(now_units),
        request_(request),
        changes_(std::move(changes)),
        errors_(ErrorsForFamily(changes_.count())) {
    changes_.Judge(errors_);
  }

  [[nodiscard]] bool has_errors() const { return changes_.has_errors(); }

  // What is beyond a limit: functions, and "the total".
  [[nodiscard]] std::vector<std::string> BeyondLimits() const {
    std::vector<std::string> found;
    const auto check = [&](const FunctionChange& row) {
      const bool is_beyond = std::ranges::any_of(request_.limits, [&](const ChangeLimit& limit) {
        return limit.IsBeyond(row.change, changes_.total().base_amount, changes_.count());
      });
      if (is_beyond) found.push_back(row.name);
    };
    check(changes_.total());
    for (const FunctionChange& row : changes_.rows()) check(row);
    return found;
  }

  [[nodiscard]] std::string Table(const Printer& printer) const;
  [[nodiscard]] std::string Json(const std::vector<std::string>& beyond) const;

 private:
  [[nodiscard]] std::int64_t Part(const FunctionCost& cost) const {
    return request_.by_total ? cost.total : cost.self;
  }
  [[nodiscard]] std::string Row(const FunctionChange& row, double base_share, double now_share,
                                const Printer& printer) const;
  [[nodiscard]] std::string Summary() const;

  const FilteredProfile &base_, &now_;
  const double base_units_, now_units_;
  const Request& request_;
  Changes changes_;
  const double errors_;  // a significant change is larger than so many of its errors
};

constexpr std::size_t kChangeColumns = 26;
constexpr std::size_t kDiffColumns = 2 * kAmountColumns + kChangeColumns + 2 * kShareColumns + 2;

std::string Comparison::Row(const FunctionChange& row, double base_share, double now_share,
                            const Printer& printer) const {
  const std::string_view unit = now_.type().unit;
  const AmountChange& change = row.change;
  const bool is_chance = !std::isnan(change.error) && !change.is_significant;
  std::string cell =
      Right(is_chance ? "not significant" : ChangeText(change.change, change.error, unit),
            kChangeColumns);
  if (change.is_significant) cell = change.change > 0 ? printer.Red(cell) : printer.Blue(cell);
  return absl::StrCat(Right(MeanText(row.base_amount, unit), kAmountColumns),
                      Right(MeanText(row.now_amount, unit), kAmountColumns), cell,
                      Right(ShareText(base_share, NAN), kShareColumns),
                      Right(ShareText(now_share, NAN), kShareColumns), "  ");
}

std::string Comparison::Summary() const {
  if (!has_errors()) return "The profiles do not count their samples, so no change has an error.\n";
  const auto significant = std::ranges::count_if(
      changes_.rows(), [](const FunctionChange& row) { return row.change.is_significant; });
  return absl::StrFormat(
      "Significant: %d of %d functions%s. A change is if it is larger than %.1f of its standard\n"
      "errors: between two runs of one program, any is in 1 of %.0f comparisons.\n",
      significant, changes_.rows().size(),
      changes_.total().change.is_significant ? ", and the total" : ", not the total", errors_,
      1 / kFalseAlarms);
}

std::string Comparison::Table(const Printer& printer) const {
  const FunctionChange& total = changes_.total();
  const std::vector<FunctionChange>& rows = changes_.rows();
  std::string text = absl::StrCat(
      Row(total, ShareOf(base_.sum, base_.whole), ShareOf(now_.sum, now_.whole), printer),
      printer.Bold(total.base_amount == 0
                       ? total.name
                       : absl::StrFormat("%s (%+.1f %%)", total.name,
                                         100 * total.change.change / std::abs(total.base_amount))),
      "\n");
  const std::size_t shown = request_.rows == 0 ? rows.size() : std::min(request_.rows, rows.size());
  for (const FunctionChange& row : std::span(rows).first(shown)) {
    absl::StrAppend(
        &text,
        Row(row, ShareOf(Part(row.base), base_.whole), ShareOf(Part(row.now), now_.whole), printer),
        printer.Cut(row.name, kDiffColumns), "\n");
  }
  return text + Summary();
}

std::string Comparison::Json(const std::vector<std::string>& beyond) const {
  JsonWriter json;
  JsonHead(json, now_);
  json.Member("base_sum", base_.sum);
  JsonShare(json, "base_samples", base_.samples.taken());
  JsonShare(json, "units", now_units_);
  JsonShare(json, "base_units", base_units_);
  const auto change = [&json](const AmountChange& amount) {
    JsonShare(json, "change", amount.change);
    JsonShare(json, "error", amount.error);
    json.Member("significant", amount.is_significant);
  };
  change(changes_.total().change);
  json.Key("functions");
  json.BeginArray();
  for (const FunctionChange& row : changes_.rows()) {
    json.BeginObject();
    json.Member("function", row.name);
    json.Member("self", row.now.self);
    json.Member("total", row.now.total);
    json.Member("base_self", row.base.self);
    json.Member("base_total", row.base.total);
    JsonShare(json, "share", ShareOf(Part(row.now), now_.whole));
    JsonShare(json, "base_share", ShareOf(Part(row.base), base_.whole));
    change(row.change);
    json.EndObject();
  }
  json.EndArray();
  json.Key("beyond_limits");
  json.BeginArray();
  for (const std::string& name : beyond) json.String(name);
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace

absl::StatusOr<DiffText> DiffCommand(const FilteredProfile& base, const FilteredProfile& subject,
                                     const Request& request, const Printer& printer) {
  if (base.type() != subject.type())
    return absl::InvalidArgumentError("the profiles have different value types: see --type");
  const absl::StatusOr<Side> before = Side::Of(base, request.per);
  if (!before.ok()) return before.status();
  const absl::StatusOr<Side> after = Side::Of(subject, request.per);
  if (!after.ok()) return after.status();
  const Comparison comparison(base, subject, before->units, after->units,
                              Changes(*before, *after, request.by_total), request);
  const bool needs_errors = std::ranges::any_of(request.limits, &ChangeLimit::needs_errors);
  if (needs_errors && !comparison.has_errors()) {
    return absl::InvalidArgumentError(
        "--fail-if with sigma: the profiles do not count their samples, so no change has an error");
  }
  const std::vector<std::string> beyond = comparison.BeyondLimits();
  DiffText result{.text = {}, .is_beyond_limit = !beyond.empty()};
  if (request.json) {
    result.text = comparison.Json(beyond);
    return result;
  }
  result.text = absl::StrCat(
      "base  ", Heading(base, printer), "now   ", Heading(subject, printer),
      request.per.empty() ? "" : absl::StrCat("amounts are per ", request.per, "\n"),
      printer.Bold(absl::StrCat(Right("base", kAmountColumns), Right("now", kAmountColumns),
                                Right("change", kChangeColumns), Right("share", kShareColumns),
                                Right("now", kShareColumns), "  function, by ",
                                request.by_total ? "total" : "self")),
      "\n", comparison.Table(printer),
      beyond.empty() ? "" : absl::StrCat("Beyond the limit: ", absl::StrJoin(beyond, ", "), "\n"));
  return result;
}

}  // namespace strobe::internal
