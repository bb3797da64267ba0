#include "strobe/worker/program/remote_core.h"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/clock/system_clock.h"
#include "strobe/runtime/control/profiler_core.h"
#include "strobe/worker/remote_profiler.h"
#include "strobe/worker/shared/recording_messages.h"

namespace strobe::internal {
namespace {

// The program's own time for an answer, beyond that of the export.
constexpr std::int64_t kAnswerNs = 2'000'000'000;

}  // namespace

RemoteCore::RemoteCore(ProfilerOptions options, std::unique_ptr<RemoteChannels> channels,
                       Serve serve_here)
    : fork_count_(Platform::ForkCount()),
      options_(std::move(options)),
      options_status_(Validate(options_)),
      signal_{.requested = static_cast<int>(*options_.sampling.signal_number)},
      channels_(std::move(channels)),
      serve_here_(std::move(serve_here)) {}

RemoteCore::RemoteCore(const ProfilerOptions& options, Serve serve_here)
    : RemoteCore(options, std::make_unique<ChannelsOf<RemoteTraits>>(options.threads),
                 std::move(serve_here)) {}

RemoteCore::~RemoteCore() {
  toggle_.reset();
  StopForGood();
  signal_exit_.reset();
}

bool RemoteCore::IsOfThisProcess() const { return Platform::ForkCount() == fork_count_; }

absl::Status RemoteCore::Usable() const {
  if (!*options_.enabled) return absl::FailedPreconditionError("the profiler is switched off");
  return options_status_;
}

absl::Status RemoteCore::Open() {
  absl::Status status = Usable();
  return status.ok() ? channels_->Open() : status;
}

Registration RemoteCore::RegisterThread(std::string_view name) {
  absl::StatusOr<RemoteChannels::Entry> entry;
  if (!HasMemoryFor([&] { entry = TryRegister(name); })) entry = OutOfMemory();
  if (entry.ok()) return Registration(this, entry->registered, entry->thread_id);
  channels_->CountRefused();
  return Registration(entry.status());
}

absl::StatusOr<RemoteChannels::Entry> RemoteCore::TryRegister(std::string_view name) {
  if (absl::Status status = Open(); !status.ok()) return status;
  if (is_running_.load(std::memory_order_acquire)) {
    const std::unique_lock lock(control_mutex_, std::try_to_lock);
    if (lock.owns_lock()) static_cast<void>(SeeToWorker());
    channels_->Reclaim();
  }
  absl::StatusOr<RemoteChannels::Entry> entry =
      channels_->Register(name, signal_, ThreadNeeds::Of(options_));
  if (entry.ok()) Share(*entry);
  return entry;
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

void RemoteCore::EndRegistration(void* registered, std::uint64_t thread_id) {
  if (!IsOfThisProcess()) return EndSuccessorOf(registered);
  if (!MayEndRegistration<Platform>(thread_id, this)) return;
  const std::uint32_t index = channels_->BeginToEnd(registered);
  const SharedArea& area = Platform::Area();
  SharedRegistration& shared = *area.At(index);
  shared.end_cpu_ns = Platform::ThreadCpuTimeNs(thread_id);
  shared.end_ns = SystemClock().MonotonicNs();
  const bool is_running = is_running_.load(std::memory_order_acquire);
  shared.state.store(is_running ? SharedRegistrationState::kLeft : SharedRegistrationState::kFree,
                     std::memory_order_release);
  area.Announce(index);
  if (channels_->Unregister(registered)) delete this;
}

absl::Status RemoteCore::Start() {
  const std::lock_guard lock(control_mutex_);
  if (is_running_.load(std::memory_order_relaxed)) return AlreadyRunning();
  absl::Status status;
  if (!HasMemoryFor([&] { status = StartLocked(); })) status = OutOfMemory();
  if (status.ok() && *options_.exporter.stop_at_exit) {
    ExitList::Add(channels_->number(), this, &Platform::AtExit);
    is_listed_ = true;
  }
  last_start_ = status;
  return status;
}

absl::Status RemoteCore::StartLocked() {
  if (absl::Status status = Open(); !status.ok()) return status;
  const int signal = signal_.Wanted<Platform>();
  if (absl::Status status = Platform::InstallHandler(signal); !status.ok()) return status;
  signal_.number.store(signal, std::memory_order_relaxed);
  channels_->BeginCollecting(options_.sampling);
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

std::int64_t RemoteCore::stop_timeout_ns() const {
  return static_cast<std::int64_t>(*options_.exporter.stop_timeout_s * 1e9) + kAnswerNs;
}

absl::Status RemoteCore::Flush() {
  const std::lock_guard lock(control_mutex_);
  absl::Status status = SeeToWorker();
  if (!status.ok()) return status;
  const absl::StatusOr<Message> answer =
      Ask(worker_->socket(), MessageKind::kFlush, stop_timeout_ns());
  return answer.ok() ? StatusOf(*answer, MessageKind::kFlushed) : answer.status();
}

absl::Status RemoteCore::Stop() {
  const std::lock_guard lock(control_mutex_);
  // The session goes on: nothing of it could be had here.
  if (worker_ && worker_->socket().IsElsewhere())
    return absl::FailedPreconditionError(
        "the calling thread has files of its own (unshare): stop the profiler on a thread that "
        "shares the program's");
  return StopLocked();
}

void RemoteCore::StopForGood() {
  const std::lock_guard lock(control_mutex_);
  static_cast<void>(StopLocked());
}

absl::Status RemoteCore::StopLocked() {
  if (!is_running_.exchange(false, std::memory_order_acq_rel)) return NotRunning();
  if (std::exchange(is_listed_, false) && !ExitList::Remove(channels_->number(), this))
    is_exit_using_ = true;
  absl::Status status = absl::UnavailableError("the worker process has died");
  if (worker_) {
    const absl::StatusOr<Message> answer =
        Ask(worker_->socket(), MessageKind::kStop, stop_timeout_ns());
    status = answer.ok() ? StatusOf(*answer, MessageKind::kStopped) : answer.status();
    EndWorker(answer.ok() ? kAnswerNs : 0);
    if (!answer.ok()) CountLoss();
  } else {
    CountLoss();
  }
  channels_->EndCollecting();
  return status;
}

void RemoteCore::StopAtExit() {
  if (!IsOfThisProcess()) return;
  {
    std::unique_lock lock(control_mutex_, std::defer_lock);
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(stop_timeout_ns());
    if (LockBy(lock, deadline)) static_cast<void>(StopLocked());
  }
  is_exit_using_.store(false, std::memory_order_release);  // the last access
}

// The process ends next.
void RemoteCore::StopForSignal() {
  std::unique_lock lock(control_mutex_, std::defer_lock);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(stop_timeout_ns());
  if (!LockBy(lock, deadline)) return;
  static_cast<void>(StopLocked());
  lock.release();
}

void RemoteCore::Retire() {
  toggle_.reset();
  StopForGood();
  signal_exit_.reset();
  if (is_exit_using_.load(std::memory_order_acquire)) return;
  if (channels_->Orphan() == 0) delete this;
}

bool RemoteCore::IsRunning() const { return is_running_.load(std::memory_order_acquire); }

AbstractCore::OwnRegistration RemoteCore::FindOwnRegistration() const {
  const RemoteChannels::Entry own = channels_->OfCallingThread();
  return {own.registered, own.name};
}

CodeRegistration RemoteCore::RegisterCode(const GeneratedCode& code) {
  CodeRegistration registration;
  const bool has_memory = HasMemoryFor([&] {
    absl::Status status = Open();
    registration =
        status.ok() ? CodeRegistration(code_, code) : CodeRegistration(std::move(status));
  });
  return has_memory ? std::move(registration) : CodeRegistration(OutOfMemory());
}
absl::StatusOr<Profile> RemoteCore::Record(const RecordingOptions& options) {
  absl::StatusOr<Profile> profile;
  if (!HasMemoryFor([&] { profile = TryToRecord(options); })) profile = OutOfMemory();
  return profile;
}

// Holds no lock while it waits.
absl::StatusOr<Profile> RemoteCore::TryToRecord(const RecordingOptions& options) {
  if (absl::Status status = Validate(options); !status.ok()) return status;
  absl::StatusOr<SocketPair> sockets = MakeSocketPair();
  if (!sockets.ok()) return sockets.status();
  {
    const std::lock_guard lock(control_mutex_);
    absl::Status status = SeeToWorker();
    if (status.ok()) {
      status = worker_->socket().Send({.kind = MessageKind::kRecord,
                                       .text = JoinRecording(options),
                                       .descriptors = {sockets->other.descriptor(), -1}});
    }
    if (!status.ok()) return status;
  }
  sockets->other = WorkerSocket();  // so the worker's end is noticed
  return AwaitProfile(sockets->own, options, channels_->layout().value_types);
}

absl::Status RemoteCore::ToggleStatus() {
  if (*options_.sampling.toggle_signal == 0) return absl::OkStatus();
  const std::lock_guard lock(toggle_mutex_);
  absl::Status status;
  if (!HasMemoryFor([&] { status = TryToAwaitToggle(); })) status = OutOfMemory();
  return status;
}

// Requires toggle_mutex_.
absl::Status RemoteCore::TryToAwaitToggle() {
  if (absl::Status status = Usable(); !status.ok()) return status;
  const auto signal = static_cast<int>(*options_.sampling.toggle_signal);
  if (!toggle_) toggle_.emplace(signal, [this] { Toggle(); });
  return toggle_->status();
}

// On the toggle's thread. The program itself may just have done the same.
void RemoteCore::Toggle() {
  const bool is_running = is_running_.load(std::memory_order_acquire);
  const absl::Status status = is_running ? Stop() : Start();
  if (status.ok() || status == AlreadyRunning() || status == NotRunning()) return;
  static_cast<void>(HasMemoryFor([&] {
    Platform::WriteLine("strobe: after the toggle signal: " + std::string(status.message()));
  }));
}

bool RemoteCore::CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept {
  return channels_->CaptureHere(event, registers);
}

Stats RemoteCore::GetStats() {
  Stats stats;
  const bool has_memory = HasMemoryFor([&] {
    channels_->AddTo(stats);
    stats.signals_foreign = GlobalHandlerCounters().foreign.load(std::memory_order_relaxed);
    stats.signals_stale = GlobalHandlerCounters().stale.load(std::memory_order_relaxed);
    stats.signal_number = signal_.number.load(std::memory_order_relaxed);
    stats.exports_dropped = workers_lost_.load(std::memory_order_relaxed);
    stats.amount_dropped = lost_cpu_ns_.load(std::memory_order_relaxed);
    stats.requested_rate_hz = *options_.sampling.cpu_frequency_hz;
  });
  if (!has_memory) stats.out_of_memory = 1;
  return stats;
}

std::string RemoteCore::Diagnose() {
  std::string text = "Out of memory.";
  static_cast<void>(HasMemoryFor([&] {
    const std::lock_guard lock(control_mutex_);
    absl::Status status = last_start_;
    if (is_running_.load(std::memory_order_relaxed)) {
      status = SeeToWorker();
    } else if (status.ok()) {
      status = NotRunning();
    }
    text = absl::StrCat(is_here_ ? "A thread of the program" : "A worker process",
                        status.ok() ? " serves" : " does not serve",
                        " the program: ", status.ToString(), "\n");
  }));
  return text;
}

}  // namespace strobe::internal
