// strobe record: what its arguments say.
#include "record.h"

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "commands/command_line.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/platform/native.h"
#include "target_arguments.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxStackBytes = 63 << 10;  // with its registers, a sample has below 64 KiB
constexpr std::size_t kMaxRingKib = 256 << 10;
constexpr double kPeriodOfServersS = 60;
// Options that one way of recording has: in the help, and where another way is asked for.
constexpr const char* kOfPreload = "By a preloaded library";
constexpr const char* kOfPerf = "By perf events";

void DeclareCommand(CLI::App& app, const CommandLine& line, RecordOptions& options) {
  app.prefix_command();
  app.final_callback([&app, &line, &options] {
    options.command = app.remaining();
    if (!line.behind_mark()) return;
    // In `strobe record ls -- file`, the mark is one of ls.
    if (!options.command.empty()) options.command.emplace_back("--");
    options.command.insert(options.command.end(), line.behind_mark()->begin(),
                           line.behind_mark()->end());
  });
  DeclareTargets(app, options);
}

void DeclareOutput(CLI::App& app, OutputOptions& options) {
  app.add_option("-o,--output", options.path,
                 "The file to write; its name decides the format. A directory gets a file for each "
                 "process. %n, %p, %t and %h in the name of a file are the program, its "
                 "process, the time and the host. Default: PROGRAM.PID.0.pb.gz");
  app.add_flag("!--no-top", options.shows_top, "Print no table at the end");
  app.add_option_function<std::vector<std::string>>(
         "--http",
         [&options](const std::vector<std::string>& urls) {
           for (const std::string& url : urls) options.destinations.push_back({"post", url});
         },
         "Post the profile (pprof) to this URL")
      ->allow_extra_args(false);
  for (const char* const backend : {"datadog", "pyroscope", "parca", "otlp"}) {
    app.add_flag_function(
        absl::StrCat("--", backend),
        [&options, backend](std::int64_t) {
          options.destinations.push_back({backend, {}});
        },
        absl::StrCat("Send the profile to ", backend, ", as its variables in the environment say"));
  }
}

void DeclareRecording(CLI::App& app, RecordOptions& options) {
  app.add_option("-F,--frequency,--hz", options.hz,
                 "Samples per second of CPU time of a thread. Default: 100; of perf events, 99")
      ->check(CLI::Range(0.0, 20000.0));
  app.add_option("--duration", options.duration_s, "Stop after this many seconds")
      ->check(CLI::Range(0.001, 1e8));
  app.add_option(
         "--every", options.every_s,
         "Deliver a profile for each so many seconds. Default: 60 if a server is named, else "
         "one profile at the end")
      ->check(CLI::Range(1.0, 86400.0));
  app.add_flag("--until-parent", options.until_parent,
               "Stop when the command has ended, whatever it has started goes on");
}

CLI::Option& AddMode(CLI::App& app, const char* name, RecordOptions& options, RecordingMode mode,
                     const char* description) {
  const auto choose = [&options, mode](std::int64_t) { options.mode = mode; };
  return *app.add_flag_function(name, choose, description);
}

void DeclarePreload(CLI::App& app, RecordOptions& options) {
  AddMode(app, "--in-process", options, RecordingMode::kInProcess,
          "Make the profile in threads of the program")
      .group(kOfPreload);
  AddMode(app, "--worker", options, RecordingMode::kWorker,
          "Make the profile in a process beside the program, which then has no thread of the "
          "profiler's, and loses nothing if a signal kills it")
      .group(kOfPreload);
  app.add_option("--wall", options.wall_hz, "Samples per second of each thread, running or waiting")
      ->check(CLI::Range(0.0, 1000.0))
      ->group(kOfPreload);
  app.add_flag("--alloc", options.allocations, "Sample allocations and the live heap, too")
      ->group(kOfPreload);
  app.add_flag("--locks", options.locks,
               "Sample waits for the C library's mutexes, locks and conditions, too: value types "
               "delay and condition_delay")
      ->group(kOfPreload);
  app.add_flag("--exceptions", options.exceptions, "Count what C++ code throws, too")
      ->group(kOfPreload);
}

void DeclarePerf(CLI::App& app, RecordOptions& options) {
  AddMode(app, "--perf", options, RecordingMode::kPerf, "Record by perf events of the kernel")
      .group(kOfPerf);
  app.add_option("-e,--events", options.events,
                 "Record by perf events, and by these: task-clock, cycles, page-faults, off-cpu "
                 "(the time that threads wait), and others that strobe events lists; tracepoints "
                 "as sched:sched_switch, and their fields as kmem:kmalloc/bytes_alloc/")
      ->capture_default_str()
      ->group(kOfPerf);
  app.add_option("-c,--count", options.count, "Of other events, one sample for so many")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str()
      ->group(kOfPerf);
  app.add_option("--stack-bytes", options.stack_bytes, "How much of each stack is copied")
      ->check(CLI::Range(std::size_t{8}, kMaxStackBytes))
      ->capture_default_str()
      ->group(kOfPerf);
  app.add_option("--ring-kib", options.ring_kib, "The kernel's memory for records of each CPU")
      ->check(CLI::Range(std::size_t{64}, kMaxRingKib))
      ->capture_default_str()
      ->group(kOfPerf);
  app.add_option("--debug-directory", options.debug_directories,
                 "A directory where else programs, libraries and debug files are")
      ->allow_extra_args(false)
      ->group(kOfPerf);
}

// The options of that group that are given.
std::vector<std::string> Given(const CLI::App& app, const std::string& group) {
  std::vector<std::string> names;
  for (const CLI::Option* const option :
       app.get_options([&](const CLI::Option* own) { return own->get_group() == group; })) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

// Returns why what is to be recorded is not clear, or nothing.
std::string JudgeWhat(const CLI::App& app, const RecordOptions& options) {
  const std::string running = RunningTarget(app);
  if (running.empty() && options.command.empty()) {
    return "record: expected a command, processes by -p, or the whole machine by -a; see strobe "
           "record --help";
  }
  if (std::string refusal = JudgeTargets(app, options); !refusal.empty()) return refusal;
  if (!running.empty() && app.count("--until-parent") > 0)
    return absl::StrCat("record: --until-parent is of a command, and not of ", running);
  return {};
}

// Decides what takes the samples. Returns why no recording is all that is asked for, or nothing.
std::string ChooseMode(const CLI::App& app, RecordOptions& options) {
  const std::vector<std::string> of_preload = Given(app, kOfPreload);
  const std::vector<std::string> of_perf = Given(app, kOfPerf);
  const std::string running = RunningTarget(app);
  if (app.count("--in-process") > 0 && app.count("--worker") > 0)
    return "record: --in-process and --worker are two ways to record: name one of them";
  if ((options.locks || options.exceptions) && app.count("--worker") > 0)
    return "record: --locks and --exceptions are seen in the program: not with --worker";
  if (!running.empty() || app.count("-e") > 0 || app.count("--perf") > 0)
    options.mode = RecordingMode::kPerf;
  if (options.mode == RecordingMode::kPerf && !of_preload.empty()) {
    const std::string why = running.empty() ? "" : ", which is how what runs already is recorded";
    return absl::StrCat("record: ", of_preload.front(),
                        " needs a library that is preloaded, and is not of perf events", why);
  }
  if (options.every_s && !MayHavePeriods(options.output)) {
    return absl::StrCat("record: --every would write ", options.output.path,
                        " again and again: name a directory, or a file with %t");
  }
  if (options.mode != RecordingMode::kPerf && !of_perf.empty()) {
    return absl::StrCat("record: ", of_perf.front(),
                        " is of perf events: add --perf, or the events by -e");
  }
  return {};
}

// The variable that says that nothing is to be recorded, with its value; empty if none does.
std::string SwitchedOffBy() {
  for (const char* const name : {"STROBE_ENABLED", "DD_PROFILING_ENABLED"}) {
    const std::optional<std::string> value = NativePlatform::EnvironmentVariable(name);
    if (value && (*value == "0" || *value == "false")) return absl::StrCat(name, "=", *value);
  }
  return {};
}

int Record(const CLI::App& app, RecordOptions& options, const Terminal& terminal) {
  std::string refusal = JudgeWhat(app, options);
  if (refusal.empty()) refusal = ChooseMode(app, options);
  if (!refusal.empty()) {
    SayError(refusal);
    return kWrongUse;
  }
  WarnOfUnknownVariables<NativePlatform>();
  RecordingOutput output(options.output, terminal);
  if (const std::string variable = SwitchedOffBy(); !variable.empty()) {
    output.Say(absl::StrCat(variable, ": nothing is recorded"));
    return options.command.empty() ? 0 : RunUnrecorded(options, output);
  }
  if (const absl::Status status = output.Check(); !status.ok())
    return output.Fail(std::string(status.message()),
                       absl::IsInvalidArgument(status) ? kWrongUse : kFailed);
  return options.mode == RecordingMode::kPerf ? RecordPerf(options, output)
                                              : RecordPreloaded(options, output);
}

}  // namespace

double PeriodS(const RecordOptions& options) {
  const std::vector<Destination>& servers = options.output.destinations;
  if (options.every_s || servers.empty() || !MayHavePeriods(options.output))
    return options.every_s.value_or(0);
  const bool has_datadog =
      std::ranges::find(servers, "datadog", &Destination::backend) != servers.end();
  const std::optional<std::string> asked =
      NativePlatform::EnvironmentVariable("DD_PROFILING_UPLOAD_PERIOD");
  double period_s = 0;
  const bool is_asked = has_datadog && asked && absl::SimpleAtod(*asked, &period_s);
  return is_asked && period_s >= 1 ? period_s : kPeriodOfServersS;
}

void AddRecord(CommandLine& line) {
  const auto options = std::make_shared<RecordOptions>();
  CLI::App& app = *line.Add(
      "record", "Runs a program and profiles it, or profiles processes that run", [&line, options] {
        return Record(*line.app().get_subcommand("record"), *options, line.terminal());
      });
  DeclareCommand(app, line, *options);
  DeclareOutput(app, options->output);
  DeclareRecording(app, *options);
  DeclarePreload(app, *options);
  DeclarePerf(app, *options);
  app.footer(
      "  strobe record ./program --its arguments\n"
      "  strobe record -o one.html -F 1000 -- ./program\n"
      "  strobe record --perf -- ./program --its --arguments\n"
      "  strobe record -p 1234,1235 -e task-clock,off-cpu --duration 10 -o page.html\n"
      "  strobe record -a --duration 10\n\n"
      "A command is not changed: a library is preloaded, which profiles its threads, and those of\n"
      "the programs that it starts. Where none can be, as in a program that is statically linked,\n"
      "and for --perf, -e and processes that run already, the kernel takes the samples: those "
      "that\n"
      "it could not keep are in [lost], and what was counted beside the samples is in [residual].\n"
      "The recording ends when all that the command has started has ended, daemons included, or\n"
      "with -a when the command itself has. After the command's own end Ctrl-C ends it, too. The\n"
      "exit status is that of the command, which also gets the signals.");
}

}  // namespace strobe::internal
