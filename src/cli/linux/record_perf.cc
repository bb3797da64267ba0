// RecordPerf: processes or a command, recorded until they end.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "../record.h"
#include "absl/strings/str_cat.h"
#include "command_process.h"
#include "perf_recorder.h"
#include "signal_queue.h"

namespace strobe::internal {
namespace {

using Clock = std::chrono::steady_clock;

// Not a round rate: it does not keep step with what happens a hundred times a second.
constexpr double kDefaultHz = 99;
constexpr auto kRound = std::chrono::milliseconds(100);
constexpr const char* kTracing = "/sys/kernel/tracing";
// What a shell says of a command that cannot be run, and of one that is not there.
constexpr int kNotRun = 126;
constexpr int kNoCommand = 127;

// Each event of each thread and CPU has a descriptor.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Recording {
 public:
  Recording(const RecordOptions& options, const RecordHost& host, PerfEventOptions events)
      : options_(options), host_(host), recorder_(std::move(events), host.search) {}

  int Run();

 private:
  absl::Status Begin();
  absl::Status Record();
  void TakeSignals();
  [[nodiscard]] bool HaveProcessesEnded() const;
  void SayProgress(Clock::time_point now) const;

  const RecordOptions& options_;
  const RecordHost& host_;
  std::optional<SignalQueue> signals_{
      std::in_place, {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}};
  std::unique_ptr<CommandProcess> command_;
  PerfRecorder recorder_;
  std::vector<Descriptor> processes_;  // readable once it has ended
  std::vector<pollfd> polled_;         // signals first, then processes
  const Clock::time_point begin_ = Clock::now();
  bool is_stopped_ = false;
};

absl::Status Recording::Begin() {
  polled_.push_back({signals_->descriptor(), POLLIN, 0});
  if (!options_.command.empty()) {
    auto command = CommandProcess::Start(options_.command, signals_->before());
    if (!command.ok()) return command.status();
    command_ = *std::move(command);
    RaiseDescriptorLimit();
    return recorder_.AttachAtExec(static_cast<std::uint32_t>(command_->id()));
  }
  RaiseDescriptorLimit();
  for (const std::uint32_t process : options_.processes) {
    processes_.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    polled_.push_back({processes_.back().get(), POLLIN, 0});
    if (absl::Status status = recorder_.Attach(process); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The terminal sends a signal to the command as well; what another process sends is passed on.
void Recording::TakeSignals() {
  while (const auto info = signals_->Next()) {
    const auto number = static_cast<int>(info->ssi_signo);
    if (number == SIGCHLD) continue;
    if (command_ == nullptr)
      is_stopped_ = true;
    else if (info->ssi_code <= 0 && !command_->HasEnded())
      kill(command_->id(), number);
  }
}

// Those whose end cannot be seen run until the recording is stopped.
bool Recording::HaveProcessesEnded() const {
  return std::all_of(polled_.begin() + 1, polled_.end(),
                     [](const pollfd& polled) { return polled.fd < 0 && polled.events == 0; });
}

void Recording::SayProgress(Clock::time_point now) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin_).count();
  const PerfCounts counts = recorder_.counts();
  host_.progress(absl::StrCat("recording: ", seconds, " s, ", counts.samples, " samples, ",
                              counts.lost, " lost"));
}

absl::Status Recording::Record() {
  const auto end = begin_ + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(options_.duration_s));
  while (true) {
    if (absl::Status status = recorder_.Collect(polled_, kRound); !status.ok()) return status;
    const Clock::time_point now = Clock::now();
    TakeSignals();
    for (pollfd& polled : std::span(polled_).subspan(1)) {
      if ((polled.revents & POLLIN) != 0) polled = {-1, 0, 0};
    }
    const bool is_over = options_.duration_s > 0 && now >= end;
    const bool has_ended = command_ == nullptr ? HaveProcessesEnded() : command_->HasEnded();
    if (is_stopped_ || is_over || has_ended) return absl::OkStatus();
    SayProgress(now);
  }
}

int Recording::Run() {
  absl::Status status = Begin();
  if (status.ok() && command_ != nullptr) {
    status = command_->Run();
    if (!status.ok()) {
      const absl::Status reason(status.code(),
                                absl::StrCat(options_.command[0], ": ", status.message()));
      host_.deliver(reason, 0);
      return absl::IsNotFound(status) ? kNoCommand : kNotRun;
    }
  }
  if (!status.ok()) {
    host_.deliver(status, 0);
    return 1;
  }
  status = Record();
  if (command_ == nullptr || command_->HasEnded()) {
    TakeSignals();
    signals_.reset();  // one more ends this process
  }
  const std::uint32_t process =
      command_ == nullptr ? options_.processes.front() : static_cast<std::uint32_t>(command_->id());
  const bool is_written = host_.deliver(recorder_.Finish(status), process);
  while (command_ != nullptr && !command_->HasEnded()) {
    poll(polled_.data(), 1, -1);
    TakeSignals();
  }
  const int own_status = is_written ? 0 : 1;
  if (command_ == nullptr) return own_status;
  const int command_status = EndLike(*command_->status());
  return command_status != 0 ? command_status : own_status;
}

}  // namespace

int RecordPerf(const RecordOptions& options, const RecordHost& host) {
  absl::StatusOr<std::vector<PerfRequest>> requests = ParsePerfRequests(options.events, kTracing);
  if (!requests.ok()) {
    host.deliver(requests.status(), 0);
    return 1;
  }
  return Recording(options, host,
                   {.requests = *std::move(requests),
                    .hz = options.hz.value_or(kDefaultHz),
                    .count = options.count,
                    .stack_bytes = options.stack_bytes,
                    .ring_bytes = options.ring_kib << 10})
      .Run();
}

}  // namespace strobe::internal
