// diff: how amounts and shares of functions differ between two profiles.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "../../encode/json_writer.h"
#include "../../encode/row_texts.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "command.h"
#include "json_numbers.h"

namespace strobe::internal {
namespace {

// How many units of work a profile has done: what request.per names. NaN if it names nothing.
double UnitsOf(const FilteredProfile& subject, const std::string& per) {
  if (per.empty()) return 1;
  double number = 0;
  if (absl::SimpleAtod(per, &number)) return number > 0 ? number : NAN;
  const Profile& profile = subject.profile();
  if (per == "samples") return subject.samples.taken();
  if (per == "seconds") return static_cast<double>(profile.duration_ns) / 1e9;
  std::set<std::string> values;
  for (const ProfileSample& sample : profile.samples) {
    for (const Label& label : profile.label_sets[sample.labels].labels()) {
      if (label.key == per) values.insert(ValueText(label));
    }
  }
  return values.empty() ? NAN : static_cast<double>(values.size());
}

// One side of a comparison.
struct Side {
  const FilteredProfile& profile;
  double units = 1;

  [[nodiscard]] double Whole() const { return static_cast<double>(profile.whole); }
  [[nodiscard]] double Of(std::int64_t amount) const { return static_cast<double>(amount) / units; }
  [[nodiscard]] double ErrorOf(std::int64_t amount) const {
    return ErrorOfAmount(static_cast<double>(amount), Whole(), profile.samples) / units;
  }
  [[nodiscard]] double WholeError() const {
    return ErrorOfWhole(static_cast<double>(profile.sum), profile.samples) / units;
  }
  [[nodiscard]] std::string ShareOfWhole(std::int64_t amount) const {
    return ShareText(ShareOf(amount, profile.whole), NAN);
  }
};

// A function in two profiles.
struct Compared {
  std::string name;
  FunctionCost base, now;
  AmountChange change;
};

class Comparison {
 public:
  Comparison(Side base, Side now, const Request& request)
      : base_(base), now_(now), request_(request) {
    absl::flat_hash_map<std::string, Compared> all;
    Add(base.profile, &Compared::base, all);
    Add(now.profile, &Compared::now, all);
    for (auto& [name, row] : all) {
      if (Part(row.base) != 0 || Part(row.now) != 0) rows_.push_back(std::move(row));
    }
    errors_ = ErrorsForFamily(changes());
    total_ = Change(base_.Of(base_.profile.sum), now_.Of(now_.profile.sum), base_.WholeError(),
                    now_.WholeError());
    for (Compared& row : rows_)
      row.change = Change(base_.Of(Part(row.base)), now_.Of(Part(row.now)),
                          base_.ErrorOf(Part(row.base)), now_.ErrorOf(Part(row.now)));
    // Significant changes first, then the largest, and names decide among equals.
    std::ranges::sort(rows_, [](const Compared& a, const Compared& b) {
      const auto key = [](const Compared& row) {
        return std::pair(row.change.is_significant, std::abs(row.change.change));
      };
      return key(a) != key(b) ? key(a) > key(b) : a.name < b.name;
    });
  }

  // Of what there are that many changes: the functions, and the total.
  [[nodiscard]] std::size_t changes() const { return rows_.size() + 1; }
  [[nodiscard]] bool has_errors() const { return !std::isnan(total_.error); }

  // What is beyond a limit: functions, and "the total".
  [[nodiscard]] std::vector<std::string> BeyondLimits() const {
    std::vector<std::string> found;
    const auto is_beyond = [&](const AmountChange& change) {
      return std::ranges::any_of(request_.limits, [&](const ChangeLimit& limit) {
        return limit.IsBeyond(change, base_.Of(base_.profile.sum), changes());
      });
    };
    if (is_beyond(total_)) found.emplace_back("the total");
    for (const Compared& row : rows_) {
      if (is_beyond(row.change)) found.push_back(row.name);
    }
    return found;
  }

  [[nodiscard]] std::string Table(const Printer& printer) const;
  [[nodiscard]] std::string Json(const std::vector<std::string>& beyond) const;

 private:
  void Add(const FilteredProfile& one, FunctionCost Compared::*member,
           absl::flat_hash_map<std::string, Compared>& all) const {
    const std::vector<FunctionCost> costs = FunctionCosts(one.profile(), one.lines, one.column);
    for (const std::uint32_t i : LargestCosts(costs, request_.by_total)) {
      Compared& compared = all[one.lines.functions()[i].name];
      compared.name = one.lines.functions()[i].name;
      compared.*member = costs[i];
    }
  }
  [[nodiscard]] std::int64_t Part(const FunctionCost& cost) const {
    return request_.by_total ? cost.total : cost.self;
  }
  [[nodiscard]] AmountChange Change(double base, double now, double base_error,
                                    double now_error) const {
    AmountChange change{.change = now - base, .error = std::hypot(base_error, now_error)};
    change.is_significant = std::abs(change.change) > errors_ * change.error;
    return change;
  }
  [[nodiscard]] std::string ChangeCell(const AmountChange& change, const Printer& printer) const;
  [[nodiscard]] std::string Summary() const;

  const Side base_, now_;
  const Request& request_;
  std::vector<Compared> rows_;
  AmountChange total_;
  double errors_ = 0;  // a significant change is larger than so many of its errors
};

constexpr std::size_t kChangeColumns = 26;
constexpr std::size_t kDiffColumns = 2 * kAmountColumns + kChangeColumns + 2 * kShareColumns + 2;

std::string Comparison::ChangeCell(const AmountChange& change, const Printer& printer) const {
  const bool is_chance = !std::isnan(change.error) && !change.is_significant;
  const std::string cell =
      Right(is_chance ? "not significant"
                      : ChangeText(change.change, change.error, now_.profile.type().unit),
            kChangeColumns);
  if (!change.is_significant) return cell;
  return change.change > 0 ? printer.Red(cell) : printer.Blue(cell);
}

std::string Comparison::Summary() const {
  if (!has_errors()) return "The profiles do not count their samples, so no change has an error.\n";
  const auto significant =
      std::ranges::count_if(rows_, [](const Compared& row) { return row.change.is_significant; });
  return absl::StrFormat(
      "Significant: %d of %d functions%s. A change is if it is larger than %.1f of its standard\n"
      "errors: between two runs of one program, any is in 1 of %.0f comparisons.\n",
      significant, rows_.size(), total_.is_significant ? ", and the total" : ", not the total",
      errors_, 1 / kFalseAlarms);
}

std::string Comparison::Table(const Printer& printer) const {
  const std::string_view unit = now_.profile.type().unit;
  const double base_sum = base_.Of(base_.profile.sum), now_sum = now_.Of(now_.profile.sum);
  std::string text = absl::StrCat(
      Right(MeanText(base_sum, unit), kAmountColumns),
      Right(MeanText(now_sum, unit), kAmountColumns), ChangeCell(total_, printer),
      Right(base_.ShareOfWhole(base_.profile.sum), kShareColumns),
      Right(now_.ShareOfWhole(now_.profile.sum), kShareColumns), "  ",
      printer.Bold(base_sum == 0
                       ? "the total"
                       : absl::StrFormat("the total (%+.1f %%)",
                                         100 * (now_sum - base_sum) / std::abs(base_sum))),
      "\n");
  const std::size_t shown =
      request_.rows == 0 ? rows_.size() : std::min(request_.rows, rows_.size());
  for (const Compared& row : std::span(rows_).first(shown)) {
    absl::StrAppend(&text, Right(MeanText(base_.Of(Part(row.base)), unit), kAmountColumns),
                    Right(MeanText(now_.Of(Part(row.now)), unit), kAmountColumns),
                    ChangeCell(row.change, printer),
                    Right(base_.ShareOfWhole(Part(row.base)), kShareColumns),
                    Right(now_.ShareOfWhole(Part(row.now)), kShareColumns), "  ",
                    printer.Cut(row.name, kDiffColumns), "\n");
  }
  return text + Summary();
}

std::string Comparison::Json(const std::vector<std::string>& beyond) const {
  JsonWriter json;
  JsonHead(json, now_.profile);
  json.Member("base_sum", base_.profile.sum);
  JsonShare(json, "base_samples", base_.profile.samples.taken());
  JsonShare(json, "units", now_.units);
  JsonShare(json, "base_units", base_.units);
  const auto change = [&json](const AmountChange& amount) {
    JsonShare(json, "change", amount.change);
    JsonShare(json, "error", amount.error);
    json.Member("significant", amount.is_significant);
  };
  change(total_);
  json.Key("functions");
  json.BeginArray();
  for (const Compared& row : rows_) {
    json.BeginObject();
    json.Member("function", row.name);
    json.Member("self", row.now.self);
    json.Member("total", row.now.total);
    json.Member("base_self", row.base.self);
    json.Member("base_total", row.base.total);
    JsonShare(json, "share", ShareOf(Part(row.now), now_.profile.whole));
    JsonShare(json, "base_share", ShareOf(Part(row.base), base_.profile.whole));
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
  const Side before{base, UnitsOf(base, request.per)}, now{subject, UnitsOf(subject, request.per)};
  if (!(before.units > 0) || !(now.units > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--per ", request.per, ": not both profiles have it"));
  }
  const Comparison comparison(before, now, request);
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
