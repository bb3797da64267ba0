#include "perf_session.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "commands/command.h"
#include "perf/proc_files.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/program_place.h"

namespace strobe::internal {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Not a round rate: it does not keep step with what happens a hundred times a second.
constexpr double kDefaultHz = 99;
constexpr const char* kTracing = "/sys/kernel/tracing";
constexpr const char* kTracingBefore = "/sys/kernel/debug/tracing";  // where some mount it

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

}  // namespace

absl::StatusOr<std::vector<PerfRequest>> RequestsOf(const RecordOptions& options) {
  const auto is_mounted = [](const char* tracing) {
    return access(absl::StrCat(tracing, "/events").c_str(), F_OK) == 0;
  };
  const bool is_elsewhere = !is_mounted(kTracing) && is_mounted(kTracingBefore);
  return ParsePerfRequests(options.events, is_elsewhere ? kTracingBefore : kTracing);
}

sigset_t SignalsThatStop(std::initializer_list<int> more) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals, number);
  for (const int number : more) sigaddset(&signals, number);
  return signals;
}

PerfSession::PerfSession(const RecordOptions& options, std::vector<PerfRequest> requests)
    : options_(options),
      search_(SearchOf(options)),
      recorder_(EventsOf(options, std::move(requests)), search_) {}

// The name of a process that ends before its end can be recorded.
PerfSession::Title PerfSession::TitleOfRunning() const {
  if (options_.is_machine) return {HostName()};
  const std::uint32_t process = options_.processes.empty()
                                    ? StatusNumber(options_.threads.front(), "Tgid")
                                    : options_.processes.front();
  const std::string name = WholeProcessName(process, StatusValue(process, "Name"));
  return {name.empty() ? "process" : name, process};
}

absl::Status PerfSession::AttachMachine() {
  if (options_.cgroup.empty()) return recorder_.AttachMachine(std::nullopt);
  const Descriptor cgroup = OpenCgroup(options_.cgroup);
  if (!cgroup.is_open()) {
    return absl::NotFoundError(absl::StrCat("there is no control group ", options_.cgroup,
                                            " below /sys/fs/cgroup (or in its unified or "
                                            "perf_event hierarchy)"));
  }
  return recorder_.AttachMachine(cgroup.get());
}

absl::Status PerfSession::AttachRunning() {
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

absl::Status PerfSession::Record(std::span<pollfd> polled, const Steps& steps) {
  const SteadyClock::time_point begin = SteadyClock::now();
  SteadyClock::time_point next = begin + steps.period;
  while (true) {
    if (absl::Status status = recorder_.Collect(polled, kRound); !status.ok()) return status;
    const SteadyClock::time_point now = SteadyClock::now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    if (steps.is_over() || (options_.duration_s > 0 && seconds >= options_.duration_s))
      return absl::OkStatus();
    if (steps.period > SteadyClock::duration::zero() && now >= next) {
      if (absl::Status status = steps.end_period(); !status.ok()) return status;
      next += steps.period * (1 + (now - next) / steps.period);
    }
    steps.end_round(seconds);
  }
}

}  // namespace strobe::internal
