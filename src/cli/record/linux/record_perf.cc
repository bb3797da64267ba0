// RecordPerf: processes or a command, recorded until they end.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "child.h"
#include "perf/linux/perf_recorder.h"
#include "perf/proc_files.h"
#include "record/record.h"
#include "record_program.h"
#include "recorded_processes.h"
#include "running_targets.h"
#include "signal_queue.h"
#include "strobe/platform/program_place.h"

namespace strobe::internal {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Not a round rate: it does not keep step with what happens a hundred times a second.
constexpr double kDefaultHz = 99;
constexpr std::chrono::milliseconds kRound(100);
// What goes on for so long after the end of the command is worth a word.
constexpr int kRoundsUntilSaid = 10;
constexpr const char* kTracing = "/sys/kernel/tracing";

// Each event of each thread and CPU has a descriptor.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t SignalsThatStop() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals, number);
  return signals;
}

// What a process in a container has mapped is below its own root.
SymbolSearch SearchOf(const RecordOptions& options) {
  std::vector<std::string> directories = options.debug_directories;
  for (const std::vector<std::uint32_t>& ids : {options.processes, options.threads}) {
    for (const std::uint32_t id : ids) directories.push_back(absl::StrCat("/proc/", id, "/root"));
  }
  return SearchIn(directories);
}

// The directory of a control group, by its path or its name. Not open if there is none.
Descriptor OpenCgroup(const std::string& name) {
  for (const char* const root :
       {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/", "/sys/fs/cgroup/perf_event/"}) {
    const std::string path = root + name;
    if (!path.starts_with("/sys/fs/cgroup/")) continue;
    Descriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.is_open()) return directory;
  }
  return {};
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
  // What the profile says it is of.
  struct Subject {
    std::string program;
    std::uint64_t process = 0;
  };

  [[nodiscard]] Subject SubjectOfRunning() const;
  // Begins to record what runs already.
  absl::Status AttachRunning();
  absl::Status AttachMachine();
  // Until `is_over` says so, which is asked when a descriptor of `polled` is readable, and now and
  // then; or until the asked time is over.
  absl::Status Record(std::span<pollfd> polled, const std::function<bool()>& is_over);
  // Names and writes what was recorded.
  bool Deliver(const absl::Status& status, const Subject& subject);

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

bool PerfRecording::Deliver(const absl::Status& status, const Subject& subject) {
  absl::StatusOr<LoadedProfile> loaded = recorder_.Finish(status);
  if (loaded.ok()) {
    loaded->profile.program = subject.program;
    loaded->profile.process_id = subject.process;
  }
  absl::Status named = loaded.ok() ? SymbolizeProfile(*loaded, search_) : loaded.status();
  if (named.ok() && output_.has_directory()) named = output_.WriteToDirectory(*loaded);
  if (!named.ok()) loaded = named;
  return output_.Deliver(std::move(loaded), 1);
}

// The name of a process that ends before its end can be recorded.
PerfRecording::Subject PerfRecording::SubjectOfRunning() const {
  if (options_.is_machine) return {HostName()};
  const std::uint32_t process = options_.processes.empty()
                                    ? StatusNumber(options_.threads.front(), "Tgid")
                                    : options_.processes.front();
  const std::string name = WholeProcessName(process, StatusValue(process, "Name"));
  return {name.empty() ? "process" : name, process};
}

absl::Status PerfRecording::AttachMachine() {
  if (options_.cgroup.empty()) return recorder_.AttachMachine(std::nullopt);
  const Descriptor cgroup = OpenCgroup(options_.cgroup);
  if (!cgroup.is_open()) {
    return absl::NotFoundError(absl::StrCat("there is no control group ", options_.cgroup,
                                            " below /sys/fs/cgroup (or in its unified or "
                                            "perf_event hierarchy)"));
  }
  return recorder_.AttachMachine(cgroup.get());
}

absl::Status PerfRecording::AttachRunning() {
  if (options_.is_machine) return AttachMachine();
  for (const std::uint32_t thread : options_.threads) {
    if (absl::Status status = recorder_.AttachThread(thread); !status.ok()) return status;
  }
  for (const std::uint32_t process : options_.processes) {
    absl::Status status = recorder_.Attach(process);
    if (status.ok() && options_.has_children) status = recorder_.AttachDescendants(process);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int PerfRecording::RunCommand(const std::string& path) {
  const std::string& name = options_.command[0];
  Child child;
  if (!options_.until_parent && !options_.is_machine) child.FollowTree();
  if (const int error = child.Fork({.path = path, .arguments = options_.command}); error != 0)
    return output_.Fail(absl::StrCat("no process for ", name, ": ", std::strerror(error)));
  RaiseDescriptorLimit();
  const absl::Status attached =
      options_.is_machine ? AttachMachine()
                          : recorder_.AttachAtExec(static_cast<std::uint32_t>(child.id()));
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
  const bool is_written =
      Deliver(status, options_.is_machine ? SubjectOfRunning()
                                          : Subject{std::filesystem::path(name).filename().string(),
                                                    static_cast<std::uint64_t>(child.id())});
  child.StopFollowing();
  if (!child.has_ended()) child.Await(kRound, [] {});
  const int command_status = child.EndAsChildDid();
  return command_status != 0 || is_written ? command_status : kFailed;
}

int PerfRecording::RunProcesses() {
  RaiseDescriptorLimit();
  const Subject subject = SubjectOfRunning();
  absl::Status status;
  {
    const SignalQueue signals(SignalsThatStop());
    RunningTargets targets(options_.processes, options_.threads);
    status = AttachRunning();
    if (!status.ok()) return output_.Fail(std::string(status.message()));
    std::vector<pollfd> polled = targets.Polled();
    polled.push_back({signals.descriptor(), POLLIN, 0});
    status =
        Record(polled, [&] { return targets.HaveEnded(polled) || signals.Next().has_value(); });
  }
  return Deliver(status, subject) ? 0 : kFailed;
}

}  // namespace

int RecordPerf(const RecordOptions& options, RecordingOutput& output) {
  absl::StatusOr<std::vector<PerfRequest>> requests = ParsePerfRequests(options.events, kTracing);
  if (!requests.ok()) return output.Fail(std::string(requests.status().message()));
  if (options.command.empty())
    return PerfRecording(options, output, *std::move(requests)).RunProcesses();
  const RecordedProgram program = FindProgram(
      options.command[0], options.is_machine ? RecordedBy::kNothing : RecordedBy::kPerfEvents);
  if (!program.refusal.empty()) return output.Fail(program.refusal, program.status);
  return PerfRecording(options, output, *std::move(requests)).RunCommand(program.path);
}

}  // namespace strobe::internal
