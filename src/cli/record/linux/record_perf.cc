// RecordPerf: processes or a command, recorded until they end.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "child.h"
#include "perf/linux/perf_recorder.h"
#include "record/record.h"
#include "record_program.h"
#include "recorded_processes.h"
#include "signal_queue.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe::internal {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Not a round rate: it does not keep step with what happens a hundred times a second.
constexpr double kDefaultHz = 99;
constexpr std::chrono::milliseconds kRound(100);
// What goes on for so long after the end of the command is worth a word.
constexpr int kRoundsUntilSaid = 10;
constexpr const char* kTracing = "/sys/kernel/tracing";

sigset_t SignalsThatStop() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals, number);
  return signals;
}

// What a process in a container has mapped is below its own root.
SymbolSearch SearchOf(const RecordOptions& options) {
  std::vector<std::string> directories = options.debug_directories;
  for (const std::uint32_t process : options.processes)
    directories.push_back(absl::StrCat("/proc/", process, "/root"));
  return SearchIn(directories);
}

PerfEventOptions EventsOf(const RecordOptions& options, std::vector<PerfRequest> requests) {
  return {.requests = std::move(requests),
          .hz = options.hz.value_or(kDefaultHz),
          .count = options.count,
          .stack_bytes = options.stack_bytes - options.stack_bytes % sizeof(std::uint64_t),
          .ring_bytes = options.ring_kib << 10};
}

class PerfRecording {
 public:
  PerfRecording(const RecordOptions& options, RecordingOutput& output,
                std::vector<PerfRequest> requests)
      : options_(options),
        output_(output),
        search_(SearchOf(options)),
        recorder_(EventsOf(options, std::move(requests)), search_) {}

  // Each returns the status to exit with.
  int RunCommand(const std::string& path);
  int RunProcesses();

 private:
  // Until `is_over` says so, which is asked when a descriptor of `polled` is readable, and now and
  // then; or until the asked time is over.
  absl::Status Record(std::span<pollfd> polled, const std::function<bool()>& is_over);
  // Names and writes what was recorded, by the name of `program` if nothing else is known.
  bool Deliver(const absl::Status& status, const std::string& program, std::uint64_t process);

  const RecordOptions& options_;
  RecordingOutput& output_;
  const SymbolSearch search_;
  PerfRecorder recorder_;
};

absl::Status PerfRecording::Record(std::span<pollfd> polled, const std::function<bool()>& is_over) {
  const SteadyClock::time_point begin = SteadyClock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
  };
  while (true) {
    if (absl::Status status = recorder_.Collect(polled, kRound); !status.ok()) return status;
    if (is_over() || (options_.duration_s > 0 && seconds() >= options_.duration_s))
      return absl::OkStatus();
    const PerfCounts counts = recorder_.counts();
    output_.Print(seconds(), counts.samples, counts.lost);
  }
}

bool PerfRecording::Deliver(const absl::Status& status, const std::string& program,
                            std::uint64_t process) {
  absl::StatusOr<LoadedProfile> loaded = recorder_.Finish(status);
  if (loaded.ok() && loaded->profile.program.empty()) {
    loaded->profile.program = program;
    loaded->profile.process_id = process;
  }
  absl::Status named = loaded.ok() ? SymbolizeProfile(*loaded, search_) : loaded.status();
  if (named.ok() && output_.has_directory()) named = output_.WriteToDirectory(*loaded);
  if (!named.ok()) loaded = named;
  return output_.Deliver(std::move(loaded), 1);
}

int PerfRecording::RunCommand(const std::string& path) {
  const std::string& name = options_.command[0];
  Child child;
  if (!options_.until_parent) child.FollowTree();
  if (const int error = child.Fork({.path = path, .arguments = options_.command}); error != 0)
    return output_.Fail(absl::StrCat("no process for ", name, ": ", std::strerror(error)));
  RaiseDescriptorLimit();
  const absl::Status attached = recorder_.AttachAtExec(static_cast<std::uint32_t>(child.id()));
  if (!attached.ok()) return output_.Fail(std::string(attached.message()));
  if (const int error = child.Run(); error != 0)
    return output_.Fail(absl::StrCat(name, ": ", std::strerror(error)), kCannotRun);
  pollfd polled{child.descriptor(), POLLIN, 0};
  int rounds_after_end = 0;
  const absl::Status status = Record(std::span(&polled, 1), [&] {
    const bool is_over = child.Update();
    if (!is_over && child.has_ended() && ++rounds_after_end == kRoundsUntilSaid)
      SayWhatRuns(output_, RecordedProcesses({}).RunningChildren());
    return is_over;
  });
  if (child.has_ended()) child.ReleaseSignals();
  const bool is_written = Deliver(status, std::filesystem::path(path).filename().string(),
                                  static_cast<std::uint64_t>(child.id()));
  child.StopFollowing();
  if (!child.has_ended()) child.Await(kRound, [] {});
  const int command_status = child.EndAsChildDid();
  return command_status != 0 || is_written ? command_status : kFailed;
}

int PerfRecording::RunProcesses() {
  RaiseDescriptorLimit();
  std::vector<Descriptor> processes;  // readable once the process has ended
  std::vector<pollfd> polled;
  absl::Status status;
  {
    const SignalQueue signals(SignalsThatStop());
    for (const std::uint32_t process : options_.processes) {
      processes.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
      polled.push_back({processes.back().get(), POLLIN, 0});
      status = recorder_.Attach(process);
      if (status.ok() && options_.has_children) status = recorder_.AttachDescendants(process);
      if (!status.ok()) return output_.Fail(std::string(status.message()));
    }
    polled.push_back({signals.descriptor(), POLLIN, 0});
    std::size_t running = processes.size();
    status = Record(polled, [&] {
      // A process whose end cannot be seen runs until the recording is stopped.
      for (pollfd& process : std::span(polled).first(processes.size())) {
        if ((process.revents & POLLIN) == 0) continue;
        process = {-1, 0, 0};
        --running;
      }
      return running == 0 || signals.Next().has_value();
    });
  }
  return Deliver(status, "process", options_.processes.front()) ? 0 : kFailed;
}

}  // namespace

int RecordPerf(const RecordOptions& options, RecordingOutput& output) {
  absl::StatusOr<std::vector<PerfRequest>> requests = ParsePerfRequests(options.events, kTracing);
  if (!requests.ok()) return output.Fail(std::string(requests.status().message()));
  if (options.command.empty())
    return PerfRecording(options, output, *std::move(requests)).RunProcesses();
  const RecordedProgram program = FindProgram(options.command[0], RecordedBy::kPerfEvents);
  if (!program.refusal.empty()) return output.Fail(program.refusal, program.status);
  return PerfRecording(options, output, *std::move(requests)).RunCommand(program.path);
}

}  // namespace strobe::internal
