// ci: the significant changes of many profiles, as a table in Markdown.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compare.h"

namespace strobe::internal {
namespace {

// A change that is listed.
struct CiRow {
  const NamedChanges* profile;
  const FunctionChange* row;
  double part = 0;  // of the base's total

  [[nodiscard]] bool is_regression() const { return part > 0; }
  [[nodiscard]] bool is_total() const { return row == &profile->changes.total(); }
};

// `text` as code in a cell of a table: GitHub takes a bar for the end of the cell, also in code.
std::string Code(std::string_view text) {
  std::string code = "`";
  for (const char c : text) {
    if (c == '|') code += '\\';
    code += c == '`' ? '\'' : c;
  }
  return code + "`";
}

std::string NamesIn(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 10;
  const std::size_t shown = std::min(names.size(), kMostNames);
  const auto code = [](std::string* text, const std::string& name) {
    absl::StrAppend(text, Code(name));
  };
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ", code);
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

// "1 function", "2 functions".
std::string Counted(std::size_t count, std::string_view noun) {
  return absl::StrCat(count, " ", std::string(noun), count == 1 ? "" : "s");
}

// The changes of `profile` that are significant, and at least `least` of the base's total.
void AddRowsOf(const NamedChanges& profile, double least, std::vector<CiRow>& rows) {
  const Changes& changes = profile.changes;
  const double whole = std::abs(changes.total().base_amount);
  const auto add = [&](const FunctionChange& row) {
    const double size = std::abs(row.change.change);
    // All is more than a part of nothing.
    const double part = whole > 0 ? size / whole : 1;
    if (!row.change.is_significant || part < least) return;
    rows.push_back(
        {.profile = &profile, .row = &row, .part = std::copysign(part, row.change.change)});
  };
  add(changes.total());
  for (const FunctionChange& row : changes.rows()) add(row);
}

// What got slower first, then by size.
void SortRows(std::vector<CiRow>& rows) {
  std::ranges::sort(rows, [](const CiRow& a, const CiRow& b) {
    const auto key = [](const CiRow& row) {
      return std::tuple(!row.is_regression(), -std::abs(row.part), !row.is_total(),
                        std::string_view(row.profile->name), std::string_view(row.row->name));
    };
    return key(a) < key(b);
  });
}

std::string TableOf(std::span<const CiRow> rows) {
  std::string text =
      "| profile | function | base | now | change | of the base's total |\n"
      "|---|---|--:|--:|--:|--:|\n";
  for (const CiRow& one : rows) {
    const std::string& unit = one.profile->unit;
    const FunctionChange& row = *one.row;
    absl::StrAppend(&text, "| ", one.profile->name.empty() ? "" : Code(one.profile->name), " | ",
                    one.is_total() ? absl::StrCat("**", row.name, "**") : Code(row.name), " | ",
                    MeanText(row.base_amount, unit), " | ", MeanText(row.now_amount, unit), " | ",
                    ChangeText(row.change.change, row.change.error, unit), " | ",
                    absl::StrFormat("%+.1f %%", 100 * one.part), " |\n");
  }
  return text + "\n";
}

std::string Title(std::span<const CiRow> rows, std::size_t profiles) {
  const auto regressions =
      static_cast<std::size_t>(std::ranges::count_if(rows, &CiRow::is_regression));
  const std::size_t improvements = rows.size() - regressions;
  std::string what;
  if (regressions > 0) what = Counted(regressions, "regression");
  if (improvements > 0)
    absl::StrAppend(&what, what.empty() ? "" : ", ", Counted(improvements, "improvement"));
  if (what.empty()) what = "no significant change";
  return absl::StrCat("### Strobe: ", what, " in ", Counted(profiles, "profile"), "\n\n");
}

// What was compared, and what a significant change is.
std::string Explanation(const CiSubject& subject, const Request& request, std::size_t changes,
                        double errors) {
  const bool has_spread =
      subject.base_runs >= RunSpread::kLeastRuns && subject.now_runs >= RunSpread::kLeastRuns;
  std::string text = absl::StrFormat(
      "Compared: %s, %s. A change is listed if it is at least %g %% of the base's total, and "
      "larger than %.1f standard errors%s. ",
      Counted(subject.profiles.size(), "profile"), Counted(changes, "amount"), request.min_percent,
      errors, has_spread ? ", of its samples and of the spread between runs" : " of its samples");
  absl::StrAppendFormat(
      &text, "Chance alone lists any in at most 1 of %.0f comparisons of a program with itself%s\n",
      1 / request.level,
      has_spread ? "." : ", if both ran equally fast and samples are independent.");
  const auto per_iteration =
      std::ranges::count_if(subject.profiles, &NamedChanges::is_per_iteration);
  if (per_iteration > 0)
    absl::StrAppendFormat(&text, "Amounts of %s are per iteration.\n",
                          Counted(static_cast<std::size_t>(per_iteration), "profile"));
  return text;
}

}  // namespace

absl::StatusOr<CiText> CiCommand(CiSubject subject, const Request& request) {
  std::vector<std::string> unjudged;
  std::size_t changes = 0;
  for (const NamedChanges& profile : subject.profiles) {
    if (profile.changes.has_errors()) {
      changes += profile.changes.count();
    } else {
      unjudged.push_back(profile.name);
    }
  }
  if (changes == 0)
    return absl::InvalidArgumentError(
        "no two profiles have samples that are counted, so no change has an error");
  const double errors = ErrorsForFamily(changes, request.level);
  std::vector<CiRow> rows;
  for (NamedChanges& profile : subject.profiles) {
    profile.changes.Judge(errors);
    AddRowsOf(profile, request.min_percent / 100, rows);
  }
  SortRows(rows);
  const std::size_t shown = request.rows == 0 ? rows.size() : std::min(request.rows, rows.size());
  CiText result{.text = Title(rows, subject.profiles.size()),
                .has_regression = std::ranges::any_of(rows, &CiRow::is_regression)};
  if (shown > 0) result.text += TableOf(std::span(rows).first(shown));
  if (shown < rows.size())
    absl::StrAppend(&result.text, Counted(rows.size() - shown, "more row"),
                    " (`-n 0` prints all).\n\n");
  result.text += Explanation(subject, request, changes, errors);
  for (const auto& [what, names] :
       {std::pair("Only in the base", &subject.only_base), std::pair("New", &subject.only_now),
        std::pair("Not judged, for want of samples", &unjudged)}) {
    if (!names->empty()) absl::StrAppend(&result.text, "\n", what, ": ", NamesIn(*names), ".\n");
  }
  return result;
}

}  // namespace strobe::internal
