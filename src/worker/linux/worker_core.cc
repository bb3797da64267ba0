#include "strobe/worker/worker_core.h"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/base/assert.h"
#include "strobe/base/memory_guard.h"
#include "strobe/clock/system_clock.h"
#include "strobe/runtime/calling_thread.h"
#include "strobe/runtime/profiler_core.h"
#include "strobe/worker/recording_messages.h"

namespace strobe::internal {
namespace {

using Arena = SlotArena<WorkerTraits>;

// The program's own time for an answer, beyond that of the export.
constexpr std::int64_t kAnswerNs = 2'000'000'000;

std::uint32_t ChunksFor(std::int64_t threads) {
  const auto slots = static_cast<std::size_t>(threads) + Arena::kSharedSlots;
  const std::size_t chunks = (slots + Arena::kSlotsPerChunk - 1) / Arena::kSlotsPerChunk;
  // Retired slots wait for the worker, so there are twice as many.
  return static_cast<std::uint32_t>(std::min<std::size_t>(2 * chunks, Arena::kMaxChunks));
}

}  // namespace

WorkerCore::WorkerCore(ProfilerOptions options, Serve serve_here)
    : fork_count_(Platform::ForkCount()),
      options_(std::move(options)),
      options_status_(Validate(options_)),
      signal_{.requested = static_cast<int>(*options_.sampling.signal_number)},
      registry_(static_cast<std::size_t>(*options_.threads.max_threads),
                static_cast<std::size_t>(*options_.threads.ring_bytes)),
      serve_here_(std::move(serve_here)) {}

WorkerCore::~WorkerCore() {
  toggle_.reset();
  static_cast<void>(Stop());
}

bool WorkerCore::IsOfThisProcess() const { return Platform::ForkCount() == fork_count_; }

absl::Status WorkerCore::Usable() const {
  if (!*options_.enabled) return absl::FailedPreconditionError("the profiler is switched off");
  return options_status_;
}

absl::Status WorkerCore::Open() {
  absl::Status status = Usable();
  if (!status.ok()) return status;
  const auto ring_bytes = static_cast<std::size_t>(*options_.threads.ring_bytes);
  status = Platform::Open(ChunksFor(*options_.threads.max_threads), Arena::kSlotsPerChunk,
                          Arena::ChunkBytes(ring_bytes));
  return status.ok() ? registry_.Open() : status;
}

Registration WorkerCore::RegisterThread(std::string_view name) {
  absl::StatusOr<Slot*> slot;
  if (!HasMemoryFor([&] { slot = TryRegister(name); })) slot = OutOfMemory();
  if (slot.ok()) return Registration(this, *slot, (*slot)->channel->thread_id);
  registry_.CountRefused();
  return Registration(slot.status());
}

absl::StatusOr<WorkerCore::Slot*> WorkerCore::TryRegister(std::string_view name) {
  if (absl::Status status = Open(); !status.ok()) return status;
  if (is_running_.load(std::memory_order_acquire)) {
    const std::unique_lock lock(control_mutex_, std::try_to_lock);
    if (lock.owns_lock()) static_cast<void>(SeeToWorker());
    Reclaim();
  }
  absl::StatusOr<Slot*> slot =
      RegisterCallingThread(registry_, name, signal_, *options_.sampling.unblock_signal);
  if (slot.ok()) TakeSeat(**slot);
  return slot;
}

void WorkerCore::TakeSeat(const Slot& slot) {
  const SharedArea& area = Platform::Area();
  const std::uint32_t index = slot.channel->token.index;
  Seat& seat = *area.At(index);
  seat.begin_ns = slot.begin_ns;
  seat.since_ns = slot.begin_ns;
  seat.since_cpu_ns = Platform::ThreadCpuTimeNs(slot.channel->thread_id);
  seat.end_ns = 0;
  seat.end_cpu_ns = -1;
  seat.name_bytes = static_cast<std::uint32_t>(std::min(slot.name.size(), Seat::kNameBytes));
  std::memcpy(seat.name, slot.name.data(), seat.name_bytes);
  seat.state.store(SeatState::kTaken, std::memory_order_release);
  area.Announce(index);
}

void WorkerCore::EndRegistration(void* registered, std::uint64_t thread_id) {
  if (!IsOfThisProcess()) return;
  STROBE_CHECK(thread_id == Platform::CurrentThreadId(),
               "a Registration ended on another thread than it began on");
  Slot* const slot = static_cast<Slot*>(registered);
  slot->is_ending.store(true, std::memory_order_release);
  const SharedArea& area = Platform::Area();
  const std::uint32_t index = slot->channel->token.index;
  Seat& seat = *area.At(index);
  seat.end_cpu_ns = Platform::ThreadCpuTimeNs(thread_id);
  seat.end_ns = SystemClock().MonotonicNs();
  const bool is_running = is_running_.load(std::memory_order_acquire);
  seat.state.store(is_running ? SeatState::kLeft : SeatState::kFree, std::memory_order_release);
  area.Announce(index);
  if (UnregisterCallingThread(registry_, slot)) delete this;
}

// Gives back the slots that the worker has settled.
void WorkerCore::Reclaim() {
  registry_.ReclaimIf([](const Slot& slot) {
    return Platform::Area().At(slot.channel->token.index)->state.load(std::memory_order_acquire) ==
           SeatState::kFree;
  });
}

absl::Status WorkerCore::Start() {
  const std::lock_guard lock(control_mutex_);
  if (is_running_.load(std::memory_order_relaxed))
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "the profiler is already running");
  absl::Status status;
  if (!HasMemoryFor([&] { status = StartLocked(); })) status = OutOfMemory();
  if (status.ok() && *options_.exporter.stop_at_exit) {
    ExitList::Add(registry_.arena()->number(), this, &Platform::AtExit);
    is_listed_ = true;
  }
  last_start_ = status;
  return status;
}

absl::Status WorkerCore::StartLocked() {
  if (absl::Status status = Open(); !status.ok()) return status;
  const int signal = signal_.Wanted<Platform>();
  if (absl::Status status = Platform::InstallHandler(signal); !status.ok()) return status;
  signal_.number.store(signal, std::memory_order_relaxed);
  registry_.arena()->max_frames.store(static_cast<std::uint32_t>(*options_.sampling.max_frames),
                                      std::memory_order_relaxed);
  registry_.arena()->keeps_times.store(*options_.sampling.timestamps, std::memory_order_relaxed);
  registry_.BeginCollecting();
  restarts_ = 0;
  Platform::Area().header().unexported_cpu_ns.store(0, std::memory_order_relaxed);
  Platform::Area().header().lost_cpu_ns.store(0, std::memory_order_relaxed);
  absl::Status status = BeginWorker();
  if (!status.ok()) status = FallBack(std::move(status));
  if (!status.ok()) {
    Quieten();
    return status;
  }
  is_running_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

std::int64_t WorkerCore::stop_timeout_ns() const {
  return static_cast<std::int64_t>(*options_.exporter.stop_timeout_s * 1e9) + kAnswerNs;
}

absl::Status WorkerCore::Flush() {
  const std::lock_guard lock(control_mutex_);
  absl::Status status = SeeToWorker();
  if (!status.ok()) return status;
  const absl::StatusOr<Message> answer =
      Ask(worker_->socket(), MessageKind::kFlush, stop_timeout_ns());
  return answer.ok() ? StatusOf(*answer, MessageKind::kFlushed) : answer.status();
}

absl::Status WorkerCore::Stop() {
  const std::lock_guard lock(control_mutex_);
  return StopLocked();
}

absl::Status WorkerCore::StopLocked() {
  if (!is_running_.exchange(false, std::memory_order_acq_rel)) return NotRunning();
  if (std::exchange(is_listed_, false) && !ExitList::Remove(registry_.arena()->number(), this))
    is_exit_using_ = true;
  absl::Status status = absl::UnavailableError("the worker process has died");
  if (worker_) {
    const absl::StatusOr<Message> answer =
        Ask(worker_->socket(), MessageKind::kStop, stop_timeout_ns());
    status = answer.ok() ? StatusOf(*answer, MessageKind::kStopped) : answer.status();
    worker_->End(answer.ok() ? kAnswerNs : 0);
    worker_.reset();
    if (!answer.ok()) CountLoss();
  } else {
    CountLoss();
  }
  Quieten();
  return status;
}

// Without a worker: captures end, and slots need not wait for it.
void WorkerCore::Quieten() {
  registry_.VisitAll([](Slot& slot) {
    slot.channel->open_events.store(0, std::memory_order_seq_cst);
    slot.channel->is_active.store(false, std::memory_order_seq_cst);
  });
  registry_.EndCollecting([](Slot& slot) {
    Seat* const seat = Platform::Area().At(slot.channel->token.index);
    SeatState left = SeatState::kLeft;
    seat->state.compare_exchange_strong(left, SeatState::kFree, std::memory_order_acq_rel);
  });
}

void WorkerCore::StopAtExit() {
  if (!IsOfThisProcess()) return;
  {
    std::unique_lock lock(control_mutex_, std::defer_lock);
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(stop_timeout_ns());
    if (LockBy(lock, deadline)) static_cast<void>(StopLocked());
  }
  is_exit_using_.store(false, std::memory_order_release);  // the last access
}

void WorkerCore::Retire() {
  toggle_.reset();
  static_cast<void>(Stop());
  if (is_exit_using_.load(std::memory_order_acquire)) return;
  if (registry_.Orphan() == 0) delete this;
}

CodeRegistration WorkerCore::RegisterCode(const GeneratedCode& code) {
  CodeRegistration registration;
  const bool has_memory = HasMemoryFor([&] {
    absl::Status status = Open();
    registration =
        status.ok() ? CodeRegistration(code_, code) : CodeRegistration(std::move(status));
  });
  return has_memory ? std::move(registration) : CodeRegistration(OutOfMemory());
}
absl::StatusOr<Profile> WorkerCore::Record(const RecordingOptions& options) {
  absl::StatusOr<Profile> profile;
  if (!HasMemoryFor([&] { profile = TryToRecord(options); })) profile = OutOfMemory();
  return profile;
}

// Holds no lock while it waits.
absl::StatusOr<Profile> WorkerCore::TryToRecord(const RecordingOptions& options) {
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
  const auto types = Traits::Providers::AllValueTypes();
  return AwaitProfile(sockets->own, options, types);
}

absl::Status WorkerCore::ToggleStatus() {
  if (*options_.sampling.toggle_signal == 0) return absl::OkStatus();
  const std::lock_guard lock(toggle_mutex_);
  absl::Status status;
  if (!HasMemoryFor([&] { status = TryToAwaitToggle(); })) status = OutOfMemory();
  return status;
}

// Requires toggle_mutex_.
absl::Status WorkerCore::TryToAwaitToggle() {
  if (absl::Status status = Usable(); !status.ok()) return status;
  const auto signal = static_cast<int>(*options_.sampling.toggle_signal);
  if (!toggle_) toggle_.emplace(signal, [this] { Toggle(); });
  return toggle_->status();
}

// On the toggle's thread. FailedPrecondition: the program itself has just done so.
void WorkerCore::Toggle() {
  const bool is_running = is_running_.load(std::memory_order_acquire);
  const absl::Status status = is_running ? Stop() : Start();
  if (status.ok() || absl::IsFailedPrecondition(status)) return;
  static_cast<void>(HasMemoryFor([&] {
    Platform::WriteLine("strobe: after the toggle signal: " + std::string(status.message()));
  }));
}

bool WorkerCore::CaptureHere([[maybe_unused]] const EventSample& event,
                             [[maybe_unused]] const NativeRegisters* registers) noexcept {
  return false;
}

Stats WorkerCore::GetStats() {
  Stats stats;
  const bool has_memory = HasMemoryFor([&] {
    registry_.AddTo(stats);
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

std::string WorkerCore::Diagnose() {
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
