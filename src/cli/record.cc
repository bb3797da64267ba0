#include "record.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr int kWrongUse = 2;
constexpr std::size_t kTopRows = 10;
constexpr std::size_t kMaxStackBytes = 63 << 10;  // with its registers, a sample has below 64 KiB
constexpr std::size_t kMaxRingKib = 256 << 10;

int WrongUse(const std::string& what) {
  std::fprintf(stderr, "strobe record: %s\n", what.c_str());
  return kWrongUse;
}

void DeclarePerfEvents(CLI::App& app, RecordOptions& options) {
  app.add_option("-e,--events", options.events,
                 "Events: task-clock, cpu-clock, cycles, page-faults, context-switches, "
                 "tracepoints as sched:sched_switch, ...")
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
}

}  // namespace

void DeclareRecord(CLI::App& app, RecordOptions& options, Request& request) {
  app.prefix_command();
  app.final_callback([&app, &options] {
    std::vector<std::string> before = app.remaining();
    // In `strobe record ls -- file`, the mark is one of ls.
    if (!before.empty() && options.has_mark) before.emplace_back("--");
    options.command.insert(options.command.begin(), before.begin(), before.end());
  });
  app.add_option("-p,--process", options.processes, "Record these processes, until they end")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--perf", options.uses_perf, "Record the command by perf events of the kernel");
  app.add_option("-o,--output", request.output,
                 "The file to write; its name decides the format. A directory gets a file for each "
                 "process. Default: PROGRAM.PID.0.pb.gz; of perf events, strobe-PID.pb.gz");
  app.add_option("-F,--frequency,--hz", options.hz,
                 "Samples per second of CPU time of a thread. Default: 100; of perf events, 99")
      ->check(CLI::Range(0.0, 20000.0));
  app.add_option("--wall", options.wall_hz, "Samples per second of each thread, running or waiting")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_flag("--alloc", options.allocations, "Sample allocations and the live heap, too");
  app.add_flag("!--no-top", options.shows_top, "Print no table at the end");
  DeclarePerfEvents(app, options);
  app.add_option("--debug-directory", request.debug_directories,
                 "A directory where else programs, libraries and debug files are")
      ->allow_extra_args(false);
  app.footer(
      "  strobe record ./program --its arguments\n"
      "  strobe record -o one.html -F 1000 -- ./program\n"
      "  strobe record --perf -- ./program --its --arguments\n"
      "  strobe record -p 1234,1235 -e task-clock,context-switches --duration 10 -o page.html\n\n"
      "A command is not changed: a library is preloaded, which profiles its threads, and those of\n"
      "the programs that it starts. With --perf, and of processes that run already, the kernel\n"
      "takes the samples: those that it could not keep are in [lost], and what was counted beside\n"
      "the samples is in [residual]. The exit status is that of the command, which also gets the\n"
      "signals.");
}

void CutCommand(std::vector<std::string>& arguments, RecordOptions& options) {
  if (arguments.empty() || arguments[0] != "record") return;
  const auto mark = std::ranges::find(arguments, "--");
  if (mark == arguments.end()) return;
  options.has_mark = true;
  options.command.assign(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
}

int RunRecord(const RecordOptions& options, Request& request, RecordHost host,
              const Terminal& terminal) {
  if (options.command.empty() == options.processes.empty())
    return WrongUse("expected a command, or processes by -p; see strobe record --help");
  if (!options.command.empty() && !options.uses_perf) {
    return RecordPreloaded({.command = options.command,
                            .output = request.output,
                            .cpu_frequency_hz = options.hz,
                            .wall_frequency_hz = options.wall_hz,
                            .allocations = options.allocations,
                            .shows_top = options.shows_top},
                           terminal);
  }
  if (const auto format = FormatOf(request); !format.ok())
    return WrongUse(std::string(format.status().message()));
  // What a process in a container has mapped is below its own root.
  for (const std::uint32_t process : options.processes)
    request.debug_directories.push_back(absl::StrCat("/proc/", process, "/root"));
  host.search = SearchFor(request);
  RecordOptions rounded = options;
  rounded.stack_bytes -= rounded.stack_bytes % sizeof(std::uint64_t);
  return RecordPerf(rounded, host);
}

absl::Status FinishRecording(LoadedProfile loaded, std::uint32_t process, Request request) {
  if (request.output.empty()) request.output = absl::StrCat("strobe-", process, ".pb.gz");
  const absl::StatusOr<std::string> format = FormatOf(request);
  if (!format.ok()) return format.status();
  if (absl::Status status = SymbolizeProfile(loaded, request); !status.ok()) return status;
  const Text bytes = EncodeAs(*format, loaded, request);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = WriteFile(request.output, *bytes); !status.ok()) return status;
  request.rows = kTopRows;
  const std::vector<std::string> comments = loaded.comments;
  const absl::StatusOr<Subject> subject = MakeSubject(std::move(loaded), request);
  if (!subject.ok()) return subject.status();
  const Text top = TopCommand(*subject, request, Paper(Terminal{}));
  if (!top.ok()) return top.status();
  std::fputs(top->c_str(), stderr);
  for (const std::string& comment : comments) std::fprintf(stderr, "%s\n", comment.c_str());
  std::fprintf(stderr, "profile: %s\n", request.output.c_str());
  return absl::OkStatus();
}

}  // namespace strobe::internal
