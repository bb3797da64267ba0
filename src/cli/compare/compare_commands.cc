// strobe diff and strobe ci: each declares its arguments here.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "commands/command_line.h"
#include "compare.h"
#include "profile_sets.h"

namespace strobe::internal {
namespace {

// Of --level. Below the least, a family of many changes is beyond what a double tells from 1.
constexpr double kLeastLevel = 1e-6, kMostLevel = 0.5;

Text Diff(CommandLine& line) {
  const Request& request = line.request();
  const absl::StatusOr<FilteredProfile> base = line.LoadSubject(request.files[0]);
  if (!base.ok()) return base.status();
  const absl::StatusOr<FilteredProfile> now = line.LoadSubject(request.files[1]);
  if (!now.ok()) return now.status();
  absl::StatusOr<DiffText> diff = DiffCommand(*base, *now, request, line.printer());
  if (!diff.ok()) return diff.status();
  if (diff->is_beyond_limit) line.EndWith(kBeyondLimit);
  return std::move(diff->text);
}

void TakeLimits(const std::vector<std::string>& texts, Request& request) {
  for (const std::string& text : texts) {
    const std::optional<ChangeLimit> limit = ChangeLimit::Parse(text);
    if (!limit.has_value())
      throw CLI::ValidationError("--fail-if", text + ": expected as +5%, -5%, 5% or 3sigma");
    request.limits.push_back(*limit);
  }
}

void AddPer(CommandLine& line, CLI::App& command, const char* by_default) {
  command.add_option("--per", line.request().per,
                     absl::StrCat("Divide amounts by units of work: iterations, samples, seconds, "
                                  "a number, or the values of a label, by its key",
                                  by_default));
}

void AddDiff(CommandLine& line) {
  Request& request = line.request();
  CLI::App* const diff =
      line.AddReader("diff", "What changed between two profiles, and whether it is chance",
                     [&line] { return Diff(line); });
  line.AddRows(*diff);
  diff->add_flag("--total", request.by_total, "Compare totals, with what was called");
  AddPer(line, *diff, "");
  diff->add_option_function<std::vector<std::string>>(
          "--fail-if",
          [&request](const std::vector<std::string>& texts) { TakeLimits(texts, request); },
          "End with status 3 if the total, or a function, changed by more: +5% of the base's "
          "total and significantly, or 3sigma; without a sign in either direction")
      ->allow_extra_args(false);
  line.AddFiles(*diff, 2);
  diff->footer(
      "The first file is the base. \"+30.6 ms \u00B1 9.1 ms\" is a change of an amount with its\n"
      "standard error, from the numbers of samples. A change is significant if it is larger than\n"
      "chance makes any change of 1 in 333 comparisons of a program with itself.\n"
      "strobe html --base compares shares in a browser.");
}

// The sum of some runs of a profile, and each of them if there are several.
struct Runs {
  Side sum;
  std::vector<Side> each{};
};

absl::StatusOr<Runs> MakeRuns(CommandLine& line, const std::vector<std::string>& paths,
                              const FilteredProfile& sum, const std::string& per) {
  absl::StatusOr<Side> side = Side::Of(sum, per);
  if (!side.ok()) return side.status();
  Runs runs{.sum = *std::move(side)};
  if (paths.size() < 2) return runs;
  runs.sum.units = 0;
  for (const std::string& path : paths) {
    const absl::StatusOr<FilteredProfile> run = line.LoadSubject(path);
    if (!run.ok()) return run.status();
    if (run->type() != sum.type())
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has other value types than the other runs: see --type"));
    absl::StatusOr<Side> one = Side::Of(*run, per);
    if (!one.ok()) return one.status();
    runs.sum.units += one->units;
    runs.each.push_back(*std::move(one));
  }
  return runs;
}

absl::StatusOr<NamedChanges> CompareRuns(CommandLine& line, const std::string& name,
                                         const std::vector<std::string>& base_paths,
                                         const std::vector<std::string>& now_paths) {
  const absl::StatusOr<FilteredProfile> base = line.LoadAll(base_paths);
  if (!base.ok()) return base.status();
  const absl::StatusOr<FilteredProfile> now = line.LoadAll(now_paths);
  if (!now.ok()) return now.status();
  if (base->type() != now->type())
    return absl::InvalidArgumentError("the profiles have different value types: see --type");
  std::string per = line.request().per;
  if (per.empty()) {
    const bool has_base = base->loaded.Iterations() > 0;
    const bool has_now = now->loaded.Iterations() > 0;
    if (has_base != has_now)
      return absl::InvalidArgumentError(absl::StrCat(
          "only the ", has_base ? "base" : "new side", " says how many iterations it has, so the ",
          "amounts do not compare: profile the other side again, or compare them by --per 1"));
    if (has_base) per = kPerIterations;
  }
  const absl::StatusOr<Runs> before = MakeRuns(line, base_paths, *base, per);
  if (!before.ok()) return before.status();
  const absl::StatusOr<Runs> after = MakeRuns(line, now_paths, *now, per);
  if (!after.ok()) return after.status();
  return NamedChanges{.name = name,
                      .unit = std::string(now->type().unit),
                      .is_per_iteration = per == kPerIterations,
                      .changes = Changes(before->sum, after->sum, line.request().by_total,
                                         before->each, after->each)};
}

Text Ci(CommandLine& line) {
  const Request& request = line.request();
  line.FailWith(kWrongUse);  // kRegression is what others fail with
  const absl::StatusOr<ProfileSet> bases = FindProfiles(request.bases);
  if (!bases.ok()) return bases.status();
  const absl::StatusOr<ProfileSet> nows = FindProfiles(request.files);
  if (!nows.ok()) return nows.status();
  CiSubject subject{.base_runs = request.bases.size(), .now_runs = request.files.size()};
  for (const auto& [name, paths] : *bases) {
    const auto now = nows->find(name);
    if (now == nows->end()) {
      subject.only_base.push_back(name);
      continue;
    }
    absl::StatusOr<NamedChanges> changes = CompareRuns(line, name, paths, now->second);
    if (!changes.ok()) {
      return absl::Status(changes.status().code(),
                          absl::StrCat(name, name.empty() ? "" : ": ", changes.status().message()));
    }
    subject.profiles.push_back(*std::move(changes));
    subject.base_runs = std::min(subject.base_runs, paths.size());
    subject.now_runs = std::min(subject.now_runs, now->second.size());
  }
  for (const auto& [name, paths] : *nows) {
    if (!bases->contains(name)) subject.only_now.push_back(name);
  }
  if (subject.profiles.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no profile has the same name in ",
                                                   request.bases[0], " and ", request.files[0],
                                                   " (both are folders, or both are files)"));
  }
  absl::StatusOr<CiText> text = CiCommand(std::move(subject), request);
  if (!text.ok()) return text.status();
  if (text->has_regression) line.EndWith(kRegression);
  return std::move(text->text);
}

void AddCi(CommandLine& line) {
  Request& request = line.request();
  CLI::App* const ci = line.AddReader(
      "ci", "What changed in profiles of tests and benchmarks: Markdown, and a status for CI",
      [&line] { return Ci(line); });
  ci->add_option("--base", request.bases,
                 "The profiles to compare with: a file, or a folder of files")
      ->required()
      ->allow_extra_args(false);
  ci->add_option("NOW", request.files,
                 "The profiles to judge: a file, or a folder; several are runs of the same")
      ->required();
  ci->add_option("--level", request.level,
                 "How often chance may make any change significant, of all in the table")
      ->check(CLI::Range(kLeastLevel, kMostLevel))
      ->capture_default_str();
  ci->add_option("--min", request.min_percent,
                 "Leave out changes of less than this percentage of the base's total")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  ci->add_option("-n,--rows", request.rows, "Rows to print; 0 prints all")->capture_default_str();
  ci->add_flag("--total", request.by_total, "Compare totals, with what was called");
  AddPer(line, *ci, ". Default: iterations, where the profiles have them");
  ci->add_option("-o,--output", request.output, "The file to write. Default: standard output");
  line.AddReading(*ci);
  ci->footer(
      "Profiles of the same name are compared: the files of two folders, or two files. Give "
      "--base\n"
      "and NOW three times or more, a folder for each run, and changes are held against the "
      "spread\n"
      "between the runs, too. The status is 0 without a significant change for the worse, 1 with\n"
      "one, and 2 for wrong arguments and for files that cannot be read.");
}

}  // namespace

void AddComparisons(CommandLine& line) {
  AddDiff(line);
  AddCi(line);
}

}  // namespace strobe::internal
