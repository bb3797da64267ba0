// The subcommands that print a table: each declares its arguments here.
#include <string>
#include <utility>

#include "command_line.h"

namespace strobe::internal {
namespace {

using Table = Text (*)(const FilteredProfile&, const Request&, const Printer&);

CLI::App* AddTable(CommandLine& line, const char* name, const char* description, Table table) {
  CLI::App* const command = line.AddReader(name, description, [&line, table]() -> Text {
    const absl::StatusOr<FilteredProfile> subject = line.LoadAll(line.request().files);
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

}  // namespace

void AddTables(CommandLine& line) {
  AddTree(line);
  AddPeek(line);
  AddList(line);
  line.AddFiles(
      *AddTable(line, "info", "What a profile holds: types, threads, labels, modules", InfoCommand),
      0);
}

}  // namespace strobe::internal
