// strobe: looks at profiles, and writes them in other formats. See README.md.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "command.h"
#include "completion.h"
#include "merge.h"
#include "profile_builder.h"
#include "progress.h"
#include "read_perf.h"
#include "read_profile.h"
#include "record.h"
#include "strobe/platform/native.h"
#include "terminal.h"
#include "worker.h"

namespace strobe::internal {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

// One run of the command.
class Command {
 public:
  Command();
  int Run(std::vector<std::string> arguments);

 private:
  CLI::App* Add(const char* name, const char* description, std::function<Text()> run);
  CLI::App* AddReader(const char* name, const char* description, std::function<Text()> run);
  void AddTables();
  void AddWriters();
  void AddOthers();
  void AddFiles(CLI::App& command, int count);
  void AddOutput(CLI::App& command);
  void AddPattern(CLI::App& command);

  absl::StatusOr<LoadedProfile> Load(const std::string& path);
  absl::StatusOr<Subject> LoadSubject(const std::string& path);
  // The filtered sum of all files.
  absl::StatusOr<Subject> LoadAll();
  Text Table(Text (*command)(const Subject&, const Request&, const Paper&));
  Text EncodeWhatIsLeft(const std::string& format, const LoadedProfile& loaded);
  Text Convert();
  Text Html();
  Text Symbolize();
  Text Script();
  absl::Status Write(const std::string& bytes);
  int Record();
  Text Listen();

  Terminal terminal_ = FindTerminal();
  Paper paper_{terminal_};
  Request request_;
  RecordOptions record_;
  CLI::App* record_command_ = nullptr;
  std::string worker_socket_;
  std::vector<std::string> label_texts_;
  double from_s_ = 0, to_s_ = 0;
  CLI::App app_{"Looks at profiles, and writes them in other formats."};
  std::vector<std::pair<CLI::App*, std::function<Text()>>> commands_;
  std::vector<CLI::Option*> from_, to_;
};

Command::Command() {
  app_.name("strobe");
  app_.require_subcommand(1);
  app_.set_help_flag("-h,--help", "What the command can do");
  app_.footer(
      "Profiles: pprof (of Strobe, Go, gperftools, ...), folded stacks, or the text of `perf "
      "script`;\ngzipped or not; \"-\" is standard input.\n\n"
      "  strobe top strobe-profiles/*.pb.gz            where the time goes\n"
      "  strobe tree --focus Parse one.pb.gz           calls that lead through Parse\n"
      "  strobe list Parse one.pb.gz                   source lines of Parse, with their cost\n"
      "  strobe diff before.pb.gz after.pb.gz          what got slower, and whether it is chance\n"
      "  strobe html -o page.html one.pb.gz            a page for a browser\n"
      "  strobe record -o one.pb.gz ./program          runs it, and profiles it\n"
      "  strobe script perf.data -o one.pb.gz          perf's samples, unwound, for pprof\n\n"
      "`strobe COMMAND --help` says more of each.");
  AddTables();
  AddWriters();
  record_command_ = app_.add_subcommand(
      "record", "Runs a program and profiles it, or profiles processes that run");
  DeclareRecord(*record_command_, record_, request_);
  AddOthers();
}

CLI::App* Command::Add(const char* name, const char* description, std::function<Text()> run) {
  CLI::App* const command = app_.add_subcommand(name, description);
  commands_.emplace_back(command, std::move(run));
  return command;
}

void Command::AddFiles(CLI::App& command, int count) {
  CLI::Option* const files =
      command.add_option("FILE", request_.files, "Profiles; those of several files are added up");
  files->required();
  if (count > 0) files->expected(count);
}

CLI::App* Command::AddReader(const char* name, const char* description, std::function<Text()> run) {
  CLI::App* const command = Add(name, description, std::move(run));
  command->add_option("--type", request_.type,
                      "The value type: cpu, wall, samples, ... (strobe info lists them)");
  command->add_option("--focus", request_.filter.focus,
                      "Keep stacks with a function that matches this regular expression");
  command->add_option("--ignore", request_.filter.ignore, "Remove stacks with such a function");
  command->add_option("--thread", request_.filter.thread,
                      "Keep threads whose name matches, or with this id");
  command->add_option("--label", label_texts_, "Keep samples with this label: key=value")
      ->allow_extra_args(false);
  from_.push_back(command->add_option(
      "--from", from_s_, "Keep samples from this many seconds after the first one on"));
  to_.push_back(command->add_option("--to", to_s_, "Keep samples before this many seconds"));
  command->add_flag("--full-names", request_.full_names,
                    "Names with parameters and template arguments");
  return command;
}

void Command::AddPattern(CLI::App& command) {
  command.add_option("FUNCTION", request_.pattern, "A regular expression for names of functions")
      ->required();
}

void Command::AddOutput(CLI::App& command) {
  command.add_option("-o,--output", request_.output,
                     "The file to write; its name decides the format. Default: standard output");
  std::vector<std::string> names;
  for (const Format& format : Formats()) names.emplace_back(format.name);
  command.add_option("--format", request_.format, "The format")->check(CLI::IsMember(names));
}

void Command::AddTables() {
  const auto add_rows = [this](CLI::App* command) {
    command->add_option("-n,--rows", request_.rows, "Rows to print; 0 prints all")
        ->capture_default_str();
    command->add_flag("--json", request_.json, "JSON, for scripts");
    return command;
  };
  const auto add_table = [&](const char* name, const char* description, auto run,
                             bool has_pattern) {
    CLI::App* const command =
        add_rows(AddReader(name, description, [this, run] { return Table(run); }));
    if (has_pattern) AddPattern(*command);
    AddFiles(*command, 0);
    return command;
  };
  CLI::App* const top = add_table("top", "Functions by their cost", TopCommand, false);
  top->add_flag("--total", request_.by_total, "Sort by the total, with what was called");
  top->footer(
      "self is the cost of a function itself, total that with what it called. A share is\n"
      "estimated from samples: \"31.2 % \u00B1 1.1\" has a standard error of 1.1 %.");
  CLI::App* const tree =
      add_table("tree", "Calls, from the outermost functions down", TreeCommand, false);
  tree->add_option("--min", request_.min_percent, "Leave out less than this percentage")
      ->capture_default_str();
  add_table("peek", "Callers and callees of functions", PeekCommand, true);
  CLI::App* const list =
      add_table("list", "Source lines of functions, with their cost", ListCommand, true);
  list->add_option("--source", request_.source_directories,
                   "A directory below which source files are looked for")
      ->allow_extra_args(false);
  list->footer(
      "Lines need a profile with STROBE_SYMBOLS=full, or one that strobe symbolize has\n"
      "made of it.");
  add_table("info", "What a profile holds: types, threads, labels, modules", InfoCommand, false);
  CLI::App* const diff = add_rows(AddReader(
      "diff", "What changed between two profiles, and whether it is chance", [this]() -> Text {
        absl::StatusOr<Subject> base = LoadSubject(request_.files[0]);
        if (!base.ok()) return base.status();
        absl::StatusOr<Subject> now = LoadSubject(request_.files[1]);
        if (!now.ok()) return now.status();
        return DiffCommand(*base, *now, request_, paper_);
      }));
  diff->add_flag("--total", request_.by_total, "Compare totals, with what was called");
  AddFiles(*diff, 2);
  diff->footer(
      "The first file is the base. Shares are compared: \"+3.1 % \u00B1 0.4\" is a change from\n"
      "10.0 % to 13.1 %, say, with a standard error of 0.4 %, from the numbers of samples.\n"
      "strobe html --base shows the same in a browser.");
}

void Command::AddWriters() {
  for (const auto& [name, description] :
       {std::pair("convert", "Writes a profile in another format"),
        std::pair("merge", "Adds profiles up, and writes the sum")}) {
    CLI::App* const command = AddReader(name, description, [this] { return Convert(); });
    AddFiles(*command, 0);
    AddOutput(*command);
    command->footer("Formats: pprof, folded, speedscope, firefox (and Perfetto), otlp, html.");
  }
  CLI::App* const html =
      AddReader("html", "A page for a browser: flame graph, tables, times", [this] {
        request_.format = "html";
        return Html();
      });
  AddFiles(*html, 0);
  html->add_option("--base", request_.base, "A profile to compare with");
  html->add_option("-o,--output", request_.output, "The file to write. Default: standard output");
  CLI::App* const symbolize =
      AddReader("symbolize", "Finds names and lines in the files of this machine",
                [this] { return Symbolize(); });
  AddFiles(*symbolize, 0);
  AddOutput(*symbolize);
  CLI::App* const script =
      AddReader("script", "Unwinds and names the samples of a perf.data file, and writes them",
                [this] { return Script(); });
  AddFiles(*script, 1);
  AddOutput(*script);
  for (CLI::App* const command : {symbolize, script}) {
    command
        ->add_option("--debug-directory", request_.debug_directories,
                     "A directory where else programs, libraries and debug files are")
        ->allow_extra_args(false);
  }
  script->footer(
      "  perf record --call-graph dwarf ./program && strobe script perf.data -o one.pb.gz\n\n"
      "Stacks are unwound by the frame information of the files, which are found as strobe\n"
      "symbolize finds them. A stack that is deeper than perf's copy ends in [truncated].");
  symbolize->footer(
      "Files are found by their build ids: at the paths of the profile, below the\n"
      "directories, in /usr/lib/debug and in debuginfod's cache; then on the servers\n"
      "that DEBUGINFOD_URLS names.");
}

void Command::AddOthers() {
  CLI::App* const worker =
      Add("worker", "Samples, names and exports for other processes", [this] { return Listen(); });
  worker
      ->add_option("--listen", worker_socket_,
                   "Serve all programs of the user that find this socket")
      ->expected(0, 1)
      ->required();
  worker->footer(
      "Prints STROBE_WORKER_SOCKET=PATH: programs with a WorkerProfiler that have this in their\n"
      "environment join. SIGTERM or Ctrl-C: exports what is left, and ends. The path's\n"
      "directory is the user's own, with mode 0700; by default $XDG_RUNTIME_DIR/strobe or\n"
      "/tmp/strobe-UID.");
  CLI::App* const completion =
      Add("completion", "Prints a script that lets a shell complete the arguments",
          [this]() -> Text { return CompletionScript(request_.shell, app_); });
  completion->add_option("SHELL", request_.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "  source <(strobe completion bash)          in ~/.bashrc\n"
      "  source <(strobe completion zsh)           in ~/.zshrc, after compinit\n"
      "  strobe completion fish | source           in config.fish");
}

absl::StatusOr<LoadedProfile> Command::Load(const std::string& path) {
  Progress progress(terminal_);
  return ReadProfileFile(path, [&](std::uint64_t bytes) { progress.Read(path, bytes); });
}

absl::StatusOr<Subject> Command::LoadSubject(const std::string& path) {
  absl::StatusOr<LoadedProfile> loaded = Load(path);
  if (!loaded.ok()) return loaded.status();
  return MakeSubject(*std::move(loaded), request_);
}

absl::StatusOr<Subject> Command::LoadAll() {
  std::vector<LoadedProfile> profiles;
  for (const std::string& path : request_.files) {
    absl::StatusOr<LoadedProfile> loaded = Load(path);
    if (!loaded.ok()) return loaded.status();
    profiles.push_back(*std::move(loaded));
    if (profiles.size() < 2) continue;
    // Two at a time, so that memory is that of the sum.
    absl::StatusOr<LoadedProfile> sum = MergeProfiles(profiles);
    if (!sum.ok()) {
      return absl::Status(sum.status().code(), absl::StrCat(path, ": ", sum.status().message()));
    }
    profiles.clear();
    profiles.push_back(*std::move(sum));
  }
  return MakeSubject(std::move(profiles[0]), request_);
}

Text Command::Table(Text (*command)(const Subject&, const Request&, const Paper&)) {
  const absl::StatusOr<Subject> subject = LoadAll();
  if (!subject.ok()) return subject.status();
  return command(*subject, request_, paper_);
}

// Without the stacks and frames that the filters have left no samples of.
Text Command::EncodeWhatIsLeft(const std::string& format, const LoadedProfile& loaded) {
  const absl::StatusOr<LoadedProfile> sum = MergeProfiles(std::span(&loaded, 1));
  if (!sum.ok()) return sum.status();
  return EncodeAs(format, *sum, request_);
}

Text Command::Convert() {
  const absl::StatusOr<std::string> format = FormatOf(request_);
  if (!format.ok()) return format.status();
  absl::StatusOr<Subject> subject = LoadAll();
  if (!subject.ok()) return subject.status();
  return EncodeWhatIsLeft(*format, subject->loaded);
}

Text Command::Html() {
  if (request_.base.empty()) return Convert();
  const absl::StatusOr<Subject> base = LoadSubject(request_.base);
  if (!base.ok()) return base.status();
  const absl::StatusOr<Subject> subject = LoadAll();
  if (!subject.ok()) return subject.status();
  return ComparisonPage(base->loaded, subject->loaded);
}

Text Command::Symbolize() {
  const absl::StatusOr<std::string> format = FormatOf(request_);
  if (!format.ok()) return format.status();
  absl::StatusOr<Subject> subject = LoadAll();
  if (!subject.ok()) return subject.status();
  Progress progress(terminal_);
  progress.Say("reading symbols");
  if (absl::Status status = SymbolizeProfile(subject->loaded, request_); !status.ok())
    return status;
  return EncodeWhatIsLeft(*format, subject->loaded);
}

Text Command::Script() {
  const absl::StatusOr<std::string> format = FormatOf(request_);
  if (!format.ok()) return format.status();
  Progress progress(terminal_);
  const std::string& path = request_.files[0];
  absl::StatusOr<LoadedProfile> loaded =
      ReadPerfFile(path, {.files = NativePlatform::Files(),
                          .search = SearchFor(request_),
                          .progress = [&](std::uint64_t bytes) { progress.Read(path, bytes); }});
  if (!loaded.ok()) return loaded.status();
  progress.Say("reading symbols");
  if (absl::Status status = SymbolizeProfile(*loaded, request_); !status.ok()) return status;
  const absl::StatusOr<Subject> subject = MakeSubject(*std::move(loaded), request_);
  if (!subject.ok()) return subject.status();
  return EncodeWhatIsLeft(*format, subject->loaded);
}

absl::Status Command::Write(const std::string& bytes) {
  if (request_.output.empty() || request_.output == "-") {
    const bool is_binary = bytes.find('\0') != std::string::npos;
    if (is_binary && terminal_.columns > 0)
      return absl::FailedPreconditionError("these are bytes, not text: give a file by -o");
    const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
                            std::fflush(stdout) == 0;
    return is_written ? absl::OkStatus() : absl::UnavailableError("cannot write standard output");
  }
  return WriteFile(request_.output, bytes);
}

Text Command::Listen() {
  if (absl::Status status = ListenForPrograms(worker_socket_); !status.ok()) return status;
  return std::string();
}

int Command::Record() {
  Progress progress(terminal_);
  const auto deliver = [&](absl::StatusOr<LoadedProfile> loaded, std::uint32_t process) {
    progress.Clear();
    const absl::Status status =
        loaded.ok() ? FinishRecording(*std::move(loaded), process, request_) : loaded.status();
    if (!status.ok()) std::fprintf(stderr, "strobe: %s\n", std::string(status.message()).c_str());
    return status.ok();
  };
  return RunRecord(record_, request_,
                   {.search = SearchFor(request_),
                    .progress = [&](const std::string& line) { progress.Say(line); },
                    .deliver = deliver},
                   terminal_);
}

int Command::Run(std::vector<std::string> arguments) {
  CutCommand(arguments, record_);
  std::ranges::reverse(arguments);  // as CLI11 takes them
  try {
    app_.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? 0 : kWrongUse;
  }
  if (record_command_->parsed()) return Record();
  for (const std::string& text : label_texts_) {
    const std::size_t equal = text.find('=');
    if (equal == std::string::npos) {
      std::fprintf(stderr, "strobe: --label %s: expected key=value\n", text.c_str());
      return kWrongUse;
    }
    request_.filter.labels.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  }
  const auto is_given = [](const CLI::Option* option) { return option->count() > 0; };
  if (std::ranges::any_of(from_, is_given)) request_.filter.from_s = from_s_;
  if (std::ranges::any_of(to_, is_given)) request_.filter.to_s = to_s_;
  for (const auto& [command, run] : commands_) {
    if (!command->parsed()) continue;
    const Text text = run();
    const absl::Status status = text.ok() ? Write(*text) : text.status();
    if (status.ok()) return 0;
    std::fprintf(stderr, "strobe: %s\n", std::string(status.message()).c_str());
    return kFailed;
  }
  return kWrongUse;
}

}  // namespace

}  // namespace strobe::internal

int main(int argc, char** argv) {
  strobe::internal::ServeIfAsked(argc, argv);
  strobe::internal::UseBinaryStreams();
  try {
    return strobe::internal::Command().Run(strobe::internal::ProgramArguments(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("strobe: there is not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strobe: %s\n", error.what());
  }
  return 1;
}
