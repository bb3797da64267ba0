// RecordPerf: processes or a command, recorded until they end.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
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
                std::vector<PerfRequest> requests, double period_s)
      : options_(options),
        output_(output),
        period_(std::chrono::nanoseconds(std::llround(period_s * 1e9))),
        search_(SearchOf(options)),
        recorder_(EventsOf(options, std::move(requests)), search_) {}

  // Each returns the status to exit with.
  int RunCommand(const std::string& path);
  int RunProcesses();

 private:
  // What the profile says it is of.
  struct Title {
    std::string program;
    std::uint64_t process = 0;
  };

  [[nodiscard]] Title TitleOfRunning() const;
  // Begins to record what runs already.
  absl::Status AttachRunning();
  absl::Status AttachMachine();
  // Until `is_over` says so, which is asked when a descriptor of `polled` is readable, and now and
  // then; or until the asked time is over.
  absl::Status Record(std::span<pollfd> polled, const std::function<bool()>& is_over);
  // Delivers what was recorded so far, on a thread of its own, because a server may be slow.
  // Nothing if the delivery before has not ended: the next one has both.
  absl::Status EndPeriod();
  // Ends the recording, and delivers the rest. False if any delivery has failed.
  bool End(const absl::Status& status);
  // Names and writes a profile.
  bool Deliver(absl::StatusOr<LoadedProfile> loaded);

  const RecordOptions& options_;
  RecordingOutput& output_;
  const SteadyClock::duration period_;  // of each profile; 0: one at the end
  const SymbolSearch search_;
  PerfRecorder recorder_;
  Title title_;
  PerfCounts before_;           // of the periods that have ended
  std::future<bool> delivery_;  // of the last of them
  bool is_written_ = true;
};

absl::Status PerfRecording::Record(std::span<pollfd> polled, const std::function<bool()>& is_over) {
  const SteadyClock::time_point begin = SteadyClock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
  };
  SteadyClock::time_point next = begin + period_;
  while (true) {
    if (absl::Status status = recorder_.Collect(polled, kRound); !status.ok()) return status;
    if (is_over() || (options_.duration_s > 0 && seconds() >= options_.duration_s))
      return absl::OkStatus();
    if (period_ > SteadyClock::duration::zero() && SteadyClock::now() >= next) {
      if (absl::Status status = EndPeriod(); !status.ok()) return status;
      next += period_;
    }
    const PerfCounts counts = recorder_.counts();
    output_.Print(seconds(), before_.samples + counts.samples, before_.lost + counts.lost);
  }
}

absl::Status PerfRecording::EndPeriod() {
  const PerfCounts counts = recorder_.counts();
  const bool is_busy =
      delivery_.valid() && delivery_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (is_busy || counts.samples == 0) return absl::OkStatus();
  absl::StatusOr<LoadedProfile> loaded = recorder_.EndPeriod();
  if (!loaded.ok()) return loaded.status();
  before_.samples += counts.samples;
  before_.lost += counts.lost;
  if (delivery_.valid()) is_written_ = delivery_.get() && is_written_;
  output_.BeginPeriods();
  const auto profile = std::make_shared<LoadedProfile>(*std::move(loaded));
  const auto deliver = [this, profile] { return Deliver(std::move(*profile)); };
  try {
    delivery_ = std::async(std::launch::async, deliver);
  } catch (const std::system_error&) {  // the system refuses the thread
    is_written_ = deliver() && is_written_;
  }
  return absl::OkStatus();
}

bool PerfRecording::End(const absl::Status& status) {
  absl::StatusOr<LoadedProfile> loaded = recorder_.Finish(status);
  if (delivery_.valid()) is_written_ = delivery_.get() && is_written_;
  const bool is_empty = loaded.ok() && loaded->profile.samples.empty();
  return (is_empty && before_.samples > 0) || Deliver(std::move(loaded)) ? is_written_ : false;
}

bool PerfRecording::Deliver(absl::StatusOr<LoadedProfile> loaded) {
  if (loaded.ok()) {
    loaded->profile.program = title_.program;
    loaded->profile.process_id = title_.process;
  }
  absl::Status named = loaded.ok() ? SymbolizeProfile(*loaded, search_) : loaded.status();
  if (named.ok() && output_.has_directory()) named = output_.WriteToDirectory(*loaded);
  if (!named.ok()) loaded = named;
  return output_.Deliver(std::move(loaded), 1);
}

// The name of a process that ends before its end can be recorded.
PerfRecording::Title PerfRecording::TitleOfRunning() const {
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
  title_ = options_.is_machine ? TitleOfRunning()
                               : Title{std::filesystem::path(name).filename().string(),
                                       static_cast<std::uint64_t>(child.id())};
  pollfd polled{child.descriptor(), POLLIN, 0};
  int rounds_after_end = 0;
  const absl::Status status = Record(std::span(&polled, 1), [&] {
    const bool is_over = child.Update();
    if (!is_over && child.has_ended() && ++rounds_after_end == kRoundsUntilSaid)
      SayWhatRuns(output_, RecordedProcesses({}).RunningChildren());
    return is_over;
  });
  if (child.has_ended()) child.ReleaseSignals();
  const bool is_written = End(status);
  child.StopFollowing();
  if (!child.has_ended()) child.Await(kRound, [] {});
  const int command_status = child.EndAsChildDid();
  return command_status != 0 || is_written ? command_status : kFailed;
}

int PerfRecording::RunProcesses() {
  RaiseDescriptorLimit();
  title_ = TitleOfRunning();
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
  return End(status) ? 0 : kFailed;
}

}  // namespace

int RecordPerf(const RecordOptions& options, RecordingOutput& output) {
  absl::StatusOr<std::vector<PerfRequest>> requests = ParsePerfRequests(options.events, kTracing);
  if (!requests.ok()) return output.Fail(std::string(requests.status().message()));
  // A thread may be off its CPU for several periods, by a stack that was in the first.
  const bool has_absences =
      std::ranges::find(*requests, true, &PerfRequest::is_off_cpu) != requests->end();
  if (has_absences && options.every_s) {
    return output.Fail("record: --every is not of off-cpu: leave out one of them", kWrongUse);
  }
  const double period_s = has_absences ? 0 : PeriodS(options);
  if (options.command.empty())
    return PerfRecording(options, output, *std::move(requests), period_s).RunProcesses();
  const RecordedProgram program = FindProgram(
      options.command[0], options.is_machine ? RecordedBy::kNothing : RecordedBy::kPerfEvents);
  if (!program.refusal.empty()) return output.Fail(program.refusal, program.status);
  return PerfRecording(options, output, *std::move(requests), period_s).RunCommand(program.path);
}

}  // namespace strobe::internal
