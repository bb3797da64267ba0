// The subcommands that print a table: each declares its arguments here.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line.h"

namespace strobe::internal {
namespace {

using Table = Text (*)(const FilteredProfile&, const Request&, const Printer&);

CLI::App* AddTable(CommandLine& line, const char* name, const char* description, Table table) {
  CLI::App* const command = line.AddReader(name, description, [&line, table]() -> Text {
    const absl::StatusOr<FilteredProfile> subject = line.LoadAll();
    if (!subject.ok()) return subject.status();
    return table(*subject, line.request(), line.printer());
  });
  line.AddRows(*command);
  return command;
}

void AddPattern(CommandLine& line, CLI::App& command) {
  command
      .add_option("FUNCTION", line.request().pattern, "A regular expression for names of functions")
      ->required();
}

void AddTree(CommandLine& line) {
  CLI::App* const tree =
      AddTable(line, "tree", "Calls, from the outermost functions down", TreeCommand);
  line.AddFiles(*tree, 0);
  tree->add_option("--min", line.request().min_percent, "Leave out less than this percentage")
      ->capture_default_str();
}

void AddPeek(CommandLine& line) {
  CLI::App* const peek = AddTable(line, "peek", "Callers and callees of functions", PeekCommand);
  AddPattern(line, *peek);
  line.AddFiles(*peek, 0);
}

void AddList(CommandLine& line) {
  CLI::App* const list =
      AddTable(line, "list", "Source lines of functions, with their cost", ListCommand);
  AddPattern(line, *list);
  line.AddFiles(*list, 0);
  list->add_option("--source", line.request().source_directories,
                   "A directory below which source files are looked for")
      ->allow_extra_args(false);
  list->footer(
      "Lines need a profile with STROBE_SYMBOLS=full, or one that strobe symbolize has\n"
      "made of it.");
}

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

void AddDiff(CommandLine& line) {
  Request& request = line.request();
  CLI::App* const diff =
      line.AddReader("diff", "What changed between two profiles, and whether it is chance",
                     [&line] { return Diff(line); });
  line.AddRows(*diff);
  diff->add_flag("--total", request.by_total, "Compare totals, with what was called");
  diff->add_option("--per", request.per,
                   "Divide amounts by units of work: samples, seconds, a number, or the values of "
                   "a label, by its key");
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

}  // namespace

void AddTables(CommandLine& line) {
  AddTree(line);
  AddPeek(line);
  AddList(line);
  line.AddFiles(
      *AddTable(line, "info", "What a profile holds: types, threads, labels, modules", InfoCommand),
      0);
  AddDiff(line);
}

}  // namespace strobe::internal
