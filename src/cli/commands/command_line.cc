#include "command_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profile/columns.h"
#include "profile/merge.h"
#include "profile/profile_builder.h"
#include "readers/read_profile.h"
#include "strobe/core/settings/nearest_name.h"
#include "ui/output_file.h"
#include "ui/progress.h"

namespace strobe::internal {
namespace {

constexpr const char* kExamples =
    "Profiles: pprof (of Strobe, Go, gperftools, ...), folded stacks, or the text of `perf "
    "script`;\ngzipped or not; \"-\" is standard input.\n\n"
    "  strobe top strobe-profiles/*.pb.gz            where the time goes\n"
    "  strobe top -p 1234                            the same of what runs, live\n"
    "  strobe tree --focus Parse one.pb.gz           calls that lead through Parse\n"
    "  strobe list Parse one.pb.gz                   source lines of Parse, with their cost\n"
    "  strobe diff before.pb.gz after.pb.gz          what got slower, and whether it is chance\n"
    "  strobe ci --base base-profiles now-profiles   the same of tests and benchmarks, for CI\n"
    "  strobe html -o page.html one.pb.gz            a page for a browser\n"
    "  strobe record -o one.pb.gz ./program          runs it, and profiles it\n"
    "  strobe script perf.data -o one.pb.gz          perf's samples, unwound, for pprof\n\n"
    "`strobe COMMAND --help` says more of each.";

void TakeLabels(const std::vector<std::string>& texts, Filter& filter) {
  for (const std::string& text : texts) {
    const std::size_t equal = text.find('=');
    if (equal == std::string::npos)
      throw CLI::ValidationError("--label", absl::StrCat(text, ": expected key=value"));
    filter.labels.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  }
}

// CLI11 takes "--" for a mark of its own.
std::optional<std::vector<std::string>> CutBehindMark(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "record") return std::nullopt;
  const auto mark = std::ranges::find(arguments, "--");
  if (mark == arguments.end()) return std::nullopt;
  std::vector<std::string> behind(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return behind;
}

bool IsProgram(const std::filesystem::path& path) {
  std::array<char, 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  const std::string_view text(head.data(), head.size());
  return text ==
             "\x7F"
             "ELF" ||
         text.starts_with("#!");
}

std::string TypeNames(const std::vector<ValueType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* text, const ValueType& type) {
    absl::StrAppend(text, std::string(type.type), " in ", std::string(type.unit));
  });
}

}  // namespace

void SayError(const std::string& what) { std::fprintf(stderr, "strobe: %s\n", what.c_str()); }

CommandLine::CommandLine() {
  app_.name("strobe");
  app_.allow_windows_style_options(false);  // a path may begin with '/' on every system
  app_.require_subcommand(1);
  app_.set_help_flag("-h,--help", "What the command can do");
  app_.set_version_flag("--version", "strobe " STROBE_VERSION, "The version");
  app_.footer(kExamples);
  for (const auto add : {AddTop, AddTables, AddComparisons, AddConverters, AddSymbolize, AddPgo,
                         AddScript, AddRecord, AddEvents, AddWorker, AddOptions, AddCompletion})
    add(*this);
}

CLI::App* CommandLine::Add(const char* name, const char* description, std::function<int()> run) {
  CLI::App* const command = app_.add_subcommand(name, description);
  commands_.emplace_back(command, std::move(run));
  return command;
}

CLI::App* CommandLine::AddText(const char* name, const char* description,
                               std::function<Text()> run) {
  return Add(name, description, [this, run = std::move(run)] {
    const Text text = run();
    const absl::Status status = text.ok() ? Write(*text) : text.status();
    if (status.ok()) return status_;
    SayError(std::string(status.message()));
    return failed_status_;
  });
}

CLI::App* CommandLine::AddReader(const char* name, const char* description,
                                 std::function<Text()> run) {
  CLI::App* const command = AddText(name, description, std::move(run));
  Filter& filter = request_.filter;
  command->add_option("--type", request_.type,
                      "The value type: cpu, wall, samples, ... (strobe info lists them)");
  command->add_option("--focus", filter.focus,
                      "Keep stacks with a function that matches this regular expression");
  command->add_option("--ignore", filter.ignore, "Remove stacks with such a function");
  command->add_option("--thread", filter.thread,
                      "Keep threads whose name matches, or with this id");
  command
      ->add_option_function<std::vector<std::string>>(
          "--label",
          [&filter](const std::vector<std::string>& texts) { TakeLabels(texts, filter); },
          "Keep samples with this label: key=value, or key=from..to for numbers")
      ->allow_extra_args(false);
  command->add_option("--from", filter.from_s,
                      "Keep samples from this many seconds after the first one on");
  command->add_option("--to", filter.to_s, "Keep samples before this many seconds");
  command->add_flag("--full-names", request_.full_names,
                    "Names with parameters and template arguments");
  return command;
}

void CommandLine::AddFiles(CLI::App& command, int count) {
  CLI::Option* const files =
      command.add_option("FILE", request_.files, "Profiles; those of several files are added up");
  files->required();
  if (count > 0) files->expected(count);
  AddReading(command);
}

void CommandLine::AddReading(CLI::App& command) {
  command
      .add_option("--max-memory", request_.max_memory_mib,
                  "The most MiB of memory for a file. Default: 64 times its bytes, but 256 to 4096")
      ->check(CLI::Range(std::size_t{1}, kMaxProfileBytes >> 20));
  command
      .add_option("--unit", request_.unit,
                  "What the numbers of folded stacks are: " + FoldedUnitNames())
      ->check([](const std::string& unit) {
        return FindFoldedUnit(unit) ? std::string() : "expected one of " + FoldedUnitNames();
      });
}

void CommandLine::AddOutput(CLI::App& command) {
  command.add_option("-o,--output", request_.output,
                     "The file to write; its name decides the format. Default: standard output");
  std::vector<std::string> names;
  for (const Format& format : Formats()) names.emplace_back(format.name);
  command.add_option("--format", request_.format, "The format")->check(CLI::IsMember(names));
}

void CommandLine::AddRows(CLI::App& command) {
  command.add_option("-n,--rows", request_.rows, "Rows to print; 0 prints all")
      ->capture_default_str();
  command.add_flag("--json", request_.json, "JSON, for scripts");
}

void CommandLine::AddDebugDirectories(CLI::App& command) {
  command
      .add_option("--debug-directory", request_.debug_directories,
                  "A directory where else programs, libraries and debug files are")
      ->allow_extra_args(false);
}

absl::StatusOr<LoadedProfile> CommandLine::Load(const std::string& path) {
  Progress progress(terminal_);
  return ReadProfileFile(
      path, [&](std::uint64_t bytes) { progress.Read(path, bytes); }, request_.max_memory_mib << 20,
      FindFoldedUnit(request_.unit).value_or(FoldedUnit{}));
}

absl::StatusOr<FilteredProfile> CommandLine::LoadSubject(const std::string& path) {
  absl::StatusOr<LoadedProfile> loaded = Load(path);
  if (!loaded.ok()) return loaded.status();
  return MakeFilteredProfile(*std::move(loaded), request_);
}

// Leaves in both profiles the types that both have, and says which ones it leaves out.
absl::Status CommandLine::KeepCommonTypes(LoadedProfile& sum, LoadedProfile& added) {
  const std::vector<ValueType> all = AllTypes(sum.profile.value_types, added.profile.value_types);
  const std::vector<ValueType> common =
      CommonTypes(sum.profile.value_types, added.profile.value_types);
  if (common.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the profiles have no value type in common: this one has ",
                     TypeNames(added.profile.value_types), ", those before have ",
                     TypeNames(sum.profile.value_types)));
  }
  if (common.size() == all.size()) return absl::OkStatus();
  std::string rest;
  for (const ValueType& type : all) {
    if (std::ranges::find(common, type) != common.end()) continue;
    if (left_out_.emplace(type.type).second)
      absl::StrAppend(&rest, rest.empty() ? "" : ", ", std::string(type.type));
  }
  if (!rest.empty()) SayError(absl::StrCat("left out, because not all files have it: ", rest));
  SetColumns(sum, common);
  SetColumns(added, common);
  return absl::OkStatus();
}

absl::StatusOr<FilteredProfile> CommandLine::LoadAll(const std::vector<std::string>& paths) {
  std::vector<LoadedProfile> profiles;
  for (const std::string& path : paths) {
    absl::StatusOr<LoadedProfile> loaded = Load(path);
    if (!loaded.ok()) return loaded.status();
    profiles.push_back(*std::move(loaded));
    if (profiles.size() < 2) continue;
    // Two at a time, so that memory is that of the sum.
    const absl::Status common = KeepCommonTypes(profiles[0], profiles[1]);
    absl::StatusOr<LoadedProfile> sum = common.ok() ? MergeProfiles(profiles) : common;
    if (!sum.ok()) {
      return absl::Status(sum.status().code(), absl::StrCat(path, ": ", sum.status().message()));
    }
    profiles.clear();
    profiles.push_back(*std::move(sum));
  }
  return MakeFilteredProfile(std::move(profiles[0]), request_);
}

absl::Status CommandLine::Write(const std::string& bytes) {
  if (!request_.output.empty() && request_.output != "-") return WriteFile(request_.output, bytes);
  const bool is_binary = bytes.find('\0') != std::string::npos;
  if (is_binary && terminal_.is_output) {
    return absl::FailedPreconditionError(
        "this is no text for a terminal: name a file by -o FILE, or send it through a pipe");
  }
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
                          std::fflush(stdout) == 0;
  return is_written ? absl::OkStatus() : absl::UnavailableError("cannot write standard output");
}

// Says what was meant by a first argument that is no command: the command for that file, or the one
// of the nearest name.
std::string CommandLine::MeantBy(const std::string& word) const {
  std::error_code error;
  const std::filesystem::path path(std::u8string(word.begin(), word.end()));
  if (std::filesystem::is_regular_file(path, error)) {
    const bool has_folder = path.has_parent_path();
    return absl::StrCat(IsProgram(path) ? has_folder ? "record " : "record ./" : "top ", word);
  }
  std::vector<std::string> names;
  for (const auto& [command, run] : commands_) names.push_back(command->get_name());
  return std::string(NearestName(word, std::vector<std::string_view>(names.begin(), names.end())));
}

int CommandLine::Run(std::vector<std::string> arguments) {
  const auto is_named = [&](const auto& command) {
    return command.first->get_name() == arguments[0];
  };
  if (!arguments.empty() && !arguments[0].starts_with("-") &&
      std::ranges::none_of(commands_, is_named)) {
    const std::string meant = MeantBy(arguments[0]);
    SayError(absl::StrCat(arguments[0], " is no command; ",
                          meant.empty() ? "strobe --help lists them"
                                        : absl::StrCat("did you mean strobe ", meant, "?")));
    return kWrongUse;
  }
  behind_mark_ = CutBehindMark(arguments);
  std::ranges::reverse(arguments);  // as CLI11 takes them
  try {
    app_.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? 0 : kWrongUse;
  }
  for (const auto& [command, run] : commands_) {
    if (command->parsed()) return run();
  }
  return kWrongUse;
}

}  // namespace strobe::internal
