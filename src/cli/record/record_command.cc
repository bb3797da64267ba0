// strobe record: what its arguments say.
#include "record.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "commands/command_line.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxStackBytes = 63 << 10;  // with its registers, a sample has below 64 KiB
constexpr std::size_t kMaxRingKib = 256 << 10;

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
  app.add_option("-p,--process", options.processes, "Record these processes, until they end")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void DeclareOutput(CLI::App& app, OutputOptions& options) {
  app.add_option("-o,--output", options.path,
                 "The file to write; its name decides the format. A directory gets a file for each "
                 "process. Default: PROGRAM.PID.0.pb.gz");
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

void DeclareRates(CLI::App& app, RecordOptions& options) {
  app.add_option("-F,--frequency,--hz", options.hz,
                 "Samples per second of CPU time of a thread. Default: 100; of perf events, 99")
      ->check(CLI::Range(0.0, 20000.0));
  app.add_option("--wall", options.wall_hz, "Samples per second of each thread, running or waiting")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_flag("--alloc", options.allocations, "Sample allocations and the live heap, too");
  app.add_flag("--worker", options.uses_worker,
               "Make the profile in a process beside the program, which then has no thread of the "
               "profiler's, and loses nothing if a signal kills it");
}

void DeclarePerfEvents(CLI::App& app, RecordOptions& options) {
  app.add_flag("--perf", options.uses_perf, "Record the command by perf events of the kernel");
  app.add_option("-e,--events", options.events,
                 "Events: task-clock, cpu-clock, cycles, page-faults, context-switches, "
                 "off-cpu (the time that threads wait), tracepoints as sched:sched_switch, ...")
      ->capture_default_str();
  app.add_option("-c,--count", options.count, "Of other events, one sample for so many")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--duration", options.duration_s, "Stop after this many seconds")
      ->check(CLI::PositiveNumber);
  app.add_option("--stack-bytes", options.stack_bytes, "How much of each stack is copied")
      ->check(CLI::Range(std::size_t{8}, kMaxStackBytes))
      ->capture_default_str();
  app.add_option("--ring-kib", options.ring_kib, "The kernel's memory for records of each CPU")
      ->check(CLI::Range(std::size_t{64}, kMaxRingKib))
      ->capture_default_str();
  app.add_option("--debug-directory", options.debug_directories,
                 "A directory where else programs, libraries and debug files are")
      ->allow_extra_args(false);
}

int Record(const RecordOptions& options, const Terminal& terminal) {
  if (options.command.empty() == options.processes.empty()) {
    SayError("record: expected a command, or processes by -p; see strobe record --help");
    return kWrongUse;
  }
  WarnOfUnknownVariables<NativePlatform>();
  RecordingOutput output(options.output, terminal);
  if (const absl::Status status = output.Check(); !status.ok())
    return output.Fail(std::string(status.message()), kWrongUse);
  return options.processes.empty() && !options.uses_perf ? RecordPreloaded(options, output)
                                                         : RecordPerf(options, output);
}

}  // namespace

void AddRecord(CommandLine& line) {
  const auto options = std::make_shared<RecordOptions>();
  CLI::App& app =
      *line.Add("record", "Runs a program and profiles it, or profiles processes that run",
                [&line, options] { return Record(*options, line.terminal()); });
  DeclareCommand(app, line, *options);
  DeclareOutput(app, options->output);
  DeclareRates(app, *options);
  DeclarePerfEvents(app, *options);
  app.footer(
      "  strobe record ./program --its arguments\n"
      "  strobe record -o one.html -F 1000 -- ./program\n"
      "  strobe record --perf -- ./program --its --arguments\n"
      "  strobe record -p 1234,1235 -e task-clock,off-cpu --duration 10 -o page.html\n\n"
      "A command is not changed: a library is preloaded, which profiles its threads, and those of\n"
      "the programs that it starts. With --perf, and of processes that run already, the kernel\n"
      "takes the samples: those that it could not keep are in [lost], and what was counted beside\n"
      "the samples is in [residual]. The exit status is that of the command, which also gets the\n"
      "signals.");
}

}  // namespace strobe::internal
