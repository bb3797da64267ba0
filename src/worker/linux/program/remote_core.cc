#include "strobe/worker/program/remote_core.h"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/clock/system_clock.h"
#include "strobe/runtime/session/running_session.h"
#include "strobe/worker/remote_profiler.h"
#include "strobe/worker/shared/recording_messages.h"

namespace strobe::internal {
namespace {

// The program's own time for an answer, beyond that of the export.
constexpr std::int64_t kAnswerNs = 2'000'000'000;

}  // namespace

RemoteCore::RemoteCore(ProfilerOptions options, std::unique_ptr<RemoteChannels> channels,
                       Serve serve_here)
    : CoreBase(std::move(options)),
      channels_(std::move(channels)),
      serve_here_(std::move(serve_here)) {}

RemoteCore::RemoteCore(const ProfilerOptions& options, Serve serve_here)
    : RemoteCore(options, std::make_unique<ChannelsOf<RemoteTraits>>(options.threads),
                 std::move(serve_here)) {}

RemoteCore::~RemoteCore() { End(); }

absl::Status RemoteCore::Open() {
  absl::Status status = Usable();
  return status.ok() ? channels_->Open() : status;
}

absl::StatusOr<RegisteredHere> RemoteCore::TryRegister(std::string_view name) {
  if (absl::Status status = Open(); !status.ok()) return status;
  if (is_running_.load(std::memory_order_acquire)) {
    const std::unique_lock lock(control_mutex(), std::try_to_lock);
    if (lock.owns_lock()) static_cast<void>(SeeToWorker());
    channels_->Reclaim();
  }
  const absl::StatusOr<RemoteChannels::Entry> entry =
      channels_->Register(name, signal(), ThreadNeeds::Of(options()));
  if (!entry.ok()) return entry.status();
  Share(*entry);
  return RegisteredHere{.registered = entry->registered, .thread_id = entry->thread_id};
}

void RemoteCore::Share(const RemoteChannels::Entry& entry) {
  const SharedArea& area = Platform::Area();
  SharedRegistration& shared = *area.At(entry.index);
  shared.begin_ns = entry.begin_ns;
  shared.since_ns = entry.begin_ns;
  shared.since_cpu_ns = Platform::ThreadCpuTimeNs(entry.thread_id);
  shared.end_ns = 0;
  shared.end_cpu_ns = -1;
  shared.name_bytes =
      static_cast<std::uint32_t>(std::min(entry.name.size(), SharedRegistration::kNameBytes));
  std::memcpy(shared.name, entry.name.data(), shared.name_bytes);
  shared.state.store(SharedRegistrationState::kTaken, std::memory_order_release);
  area.Announce(entry.index);
}

bool RemoteCore::Unregister(void* registered, std::uint64_t thread_id) {
  const std::uint32_t index = channels_->BeginToEnd(registered);
  const SharedArea& area = Platform::Area();
  SharedRegistration& shared = *area.At(index);
  shared.end_cpu_ns = Platform::ThreadCpuTimeNs(thread_id);
  shared.end_ns = SystemClock().MonotonicNs();
  const bool is_running = is_running_.load(std::memory_order_acquire);
  shared.state.store(is_running ? SharedRegistrationState::kLeft : SharedRegistrationState::kFree,
                     std::memory_order_release);
  area.Announce(index);
  return channels_->Unregister(registered);
}

absl::Status RemoteCore::TryToBegin() {
  if (absl::Status status = Open(); !status.ok()) return status;
  const int wanted = signal().Wanted<Platform>();
  if (absl::Status status = Platform::InstallHandler(wanted); !status.ok()) return status;
  signal().number.store(wanted, std::memory_order_relaxed);
  channels_->BeginCollecting(options().sampling);
  restarts_ = 0;
  Platform::Area().header().unexported_cpu_ns.store(0, std::memory_order_relaxed);
  Platform::Area().header().lost_cpu_ns.store(0, std::memory_order_relaxed);
  absl::Status status = BeginWorker();
  if (!status.ok()) status = FallBack(std::move(status));
  if (!status.ok()) {
    channels_->EndCollecting();
    return status;
  }
  is_running_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

std::chrono::nanoseconds RemoteCore::StopPatience() const {
  return StopTimeout(options().exporter) + std::chrono::nanoseconds(kAnswerNs);
}

absl::Status RemoteCore::FlushSession() {
  absl::Status status = SeeToWorker();
  if (!status.ok()) return status;
  const absl::StatusOr<Message> answer =
      Ask(worker_->socket(), MessageKind::kFlush, StopPatience().count());
  return answer.ok() ? StatusOf(*answer, MessageKind::kFlushed) : answer.status();
}

// Another thread can: the session goes on, for nothing of it could be had here.
absl::Status RemoteCore::MayStop() const {
  if (worker_ && worker_->socket().IsElsewhere())
    return absl::FailedPreconditionError(
        "the calling thread has files of its own (unshare): stop the profiler on a thread that "
        "shares the program's");
  return absl::OkStatus();
}

absl::Status RemoteCore::EndSession(bool /*ends_process*/) {
  is_running_.store(false, std::memory_order_release);
  absl::Status status = absl::UnavailableError("the worker process has died");
  if (worker_) {
    const absl::StatusOr<Message> answer =
        Ask(worker_->socket(), MessageKind::kStop, StopPatience().count());
    status = answer.ok() ? StatusOf(*answer, MessageKind::kStopped) : answer.status();
    EndWorker(answer.ok() ? kAnswerNs : 0);
    if (!answer.ok()) CountLoss();
  } else {
    CountLoss();
  }
  channels_->EndCollecting();
  return status;
}

absl::StatusOr<std::shared_ptr<GeneratedCodeOwner>> RemoteCore::TryToOpenCode() {
  if (absl::Status status = Open(); !status.ok()) return status;
  return code_;
}

AbstractCore::OwnRegistration RemoteCore::FindOwnRegistration() const {
  const RemoteChannels::Entry own = channels_->OfCallingThread();
  return {.registered = own.registered, .name = own.name};
}

absl::StatusOr<Profile> RemoteCore::TryToRecord(const RecordingOptions& options) {
  return AskWorker({.options = options});
}

absl::Status RemoteCore::TryToDump(const std::shared_ptr<const std::atomic<bool>>& cancelled) {
  return AskWorker(
             {.options = {.last = kMaxRecordingDuration, .cancelled = cancelled}, .dumps = true})
      .status();
}

absl::StatusOr<Profile> RemoteCore::AskWorker(const RecordingRequest& request) {
  absl::StatusOr<SocketPair> sockets = MakeSocketPair();
  if (!sockets.ok()) return sockets.status();
  {
    const std::lock_guard lock(control_mutex());
    absl::Status status = SeeToWorker();
    if (status.ok()) {
      status = worker_->socket().Send({.kind = MessageKind::kRecord,
                                       .text = JoinRecording(request),
                                       .descriptors = {sockets->other.descriptor(), -1}});
    }
    if (!status.ok()) return status;
  }
  sockets->other = WorkerSocket();  // so the worker's end is noticed
  return AwaitProfile(sockets->own, request.options, channels_->layout().value_types,
                      StopPatience());
}

bool RemoteCore::CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept {
  return channels_->CaptureHere(event, registers);
}

Stats RemoteCore::TryToCollectStats() {
  Stats stats;
  channels_->AddTo(stats);
  AddOwnTo(stats);
  stats.exports_dropped = workers_lost_.load(std::memory_order_relaxed);
  stats.amount_dropped = lost_cpu_ns_.load(std::memory_order_relaxed);
  stats.requested_rate_hz = *options().sampling.cpu_frequency_hz;
  return stats;
}

std::string RemoteCore::TryToDiagnose() {
  const std::lock_guard lock(control_mutex());
  absl::Status status = last_start_;
  if (IsRunning()) {
    status = SeeToWorker();
  } else if (status.ok()) {
    status = NotRunning();
  }
  return absl::StrCat(is_here_ ? "A thread of the program" : "A worker process",
                      status.ok() ? " serves" : " does not serve",
                      " the program: ", status.ToString(), "\n");
}

}  // namespace strobe::internal
