// CommandLine: the arguments of the command, what its subcommands share, and the one that is run.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "command.h"
#include "ui/exit_status.h"
#include "ui/terminal.h"

namespace strobe::internal {

class CommandLine {
 public:
  CommandLine();

  // Runs what the arguments say. Returns the status to exit with.
  int Run(std::vector<std::string> arguments);

  // Each adds a subcommand. `run` returns the status to exit with; or the text that is written to
  // request().output, or to standard output.
  CLI::App* Add(const char* name, const char* description, std::function<int()> run);
  CLI::App* AddText(const char* name, const char* description, std::function<Text()> run);
  // The status of a subcommand whose text was written; 0 unless this says another one.
  void EndWith(int status) { status_ = status; }
  // The status of a subcommand whose text could not be made; kFailed unless this says another one.
  void FailWith(int status) { failed_status_ = status; }
  // One with the filters of profiles.
  CLI::App* AddReader(const char* name, const char* description, std::function<Text()> run);

  // Arguments that several subcommands have. `count` is that of the files; 0 is any number.
  void AddFiles(CLI::App& command, int count);
  // What AddFiles adds besides the files: how they are read.
  void AddReading(CLI::App& command);
  void AddOutput(CLI::App& command);
  void AddRows(CLI::App& command);
  void AddDebugDirectories(CLI::App& command);

  // Reads the file at `path`, and filters it.
  absl::StatusOr<FilteredProfile> LoadSubject(const std::string& path);
  // The filtered sum of the files at `paths`, of which there is at least one.
  absl::StatusOr<FilteredProfile> LoadAll(const std::vector<std::string>& paths);

  [[nodiscard]] Request& request() { return request_; }
  // What stands behind the first "--" of `strobe record`, if there is one.
  [[nodiscard]] const std::optional<std::vector<std::string>>& behind_mark() const {
    return behind_mark_;
  }
  [[nodiscard]] const Terminal& terminal() const { return terminal_; }
  [[nodiscard]] const Printer& printer() const { return printer_; }
  [[nodiscard]] const CLI::App& app() const { return app_; }

 private:
  [[nodiscard]] std::string MeantBy(const std::string& word) const;
  absl::StatusOr<LoadedProfile> Load(const std::string& path);
  absl::Status KeepCommonTypes(LoadedProfile& sum, LoadedProfile& added);
  absl::Status Write(const std::string& bytes);

  const Terminal terminal_ = FindTerminal();
  const Printer printer_{terminal_};
  Request request_;
  int status_ = 0;
  int failed_status_ = kFailed;
  std::optional<std::vector<std::string>> behind_mark_;
  std::set<std::string, std::less<>> left_out_;  // value types that not all files have
  CLI::App app_{"Looks at profiles, and writes them in other formats."};
  std::vector<std::pair<CLI::App*, std::function<int()>>> commands_;
};

// The subcommands, one function a file.
void AddTop(CommandLine& line);
void AddTables(CommandLine& line);       // tree, peek, list, info
void AddComparisons(CommandLine& line);  // diff, ci
void AddConverters(CommandLine& line);   // convert, merge, html
void AddSymbolize(CommandLine& line);
void AddPgo(CommandLine& line);
void AddScript(CommandLine& line);
void AddRecord(CommandLine& line);
void AddWorker(CommandLine& line);  // nothing where there are no workers
void AddEvents(CommandLine& line);  // nothing where there are no perf events
void AddOptions(CommandLine& line);
void AddCompletion(CommandLine& line);

// Writes one line to standard error.
void SayError(const std::string& what);

}  // namespace strobe::internal
