// ProfilerCore: implements the calls of a Profiler, and what each returns if memory runs out.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/arch/current_registers.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/settings/option_texts.h"
#include "strobe/core/stats.h"
#include "strobe/core/thread_info.h"
#include "strobe/export/parts.h"
#include "strobe/runtime/capture/capture_here.h"
#include "strobe/runtime/code/code_registry.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/control/abstract_core.h"
#include "strobe/runtime/control/current_session.h"
#include "strobe/runtime/control/diagnosis.h"
#include "strobe/runtime/control/exit_list.h"
#include "strobe/runtime/control/session_toggle.h"
#include "strobe/runtime/control/signal_exit.h"
#include "strobe/runtime/session/output_accounts.h"
#include "strobe/runtime/session/profile_maker.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/runtime/session/running_session.h"
#include "strobe/runtime/session/unregistered_check.h"
#include "strobe/runtime/threads/calling_thread.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Locks the mutex. Returns false if the mutex is still locked at the deadline.
bool LockBy(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline);

template <class Traits>
class ProfilerCore final : public AbstractCore, private StoppedAtExit {
 public:
  using Platform = typename Traits::Platform;
  using Thread = RegisteredThread<Traits>;

  // `options` are final: the environment has been applied. `no_worker` says why this core takes the
  // place of one with a worker; OK if it does not.
  explicit ProfilerCore(ProfilerOptions options, Parts<Traits> parts = {},
                        absl::Status no_worker = absl::OkStatus())
      : options_(std::move(options)),
        parts_(std::move(parts)),
        options_status_(Validate(options_)),
        no_worker_(std::move(no_worker)),
        registry_(static_cast<std::size_t>(*options_.threads.max_threads),
                  static_cast<std::size_t>(*options_.threads.ring_bytes)) {}

  ~ProfilerCore() override {  // no thread may be registered
    toggle_.reset();
    static_cast<void>(Stop());
    signal_exit_.reset();
  }

  [[nodiscard]] bool IsOfThisProcess() const override {
    return Platform::ForkCount() == fork_count_;
  }

  Registration RegisterThread(std::string_view name) override {
    absl::StatusOr<Thread*> thread;
    if (!counters_.HasMemoryFor([&] { thread = TryRegister(name); })) thread = OutOfMemory();
    if (thread.ok()) return Registration(this, *thread, (*thread)->channel->thread_id);
    registry_.CountRefused();
    return Registration(thread.status());
  }

  CodeRegistration RegisterCode(const GeneratedCode& code) override {
    CodeRegistration registration;
    const bool has_memory = counters_.HasMemoryFor([&] {
      absl::Status status = Usable();
      registration =
          status.ok() ? CodeRegistration(code_, code) : CodeRegistration(std::move(status));
    });
    return has_memory ? std::move(registration) : CodeRegistration(OutOfMemory());
  }

  bool CaptureHere([[maybe_unused]] const EventSample& event,
                   [[maybe_unused]] const NativeRegisters* registers) noexcept override {
    if constexpr (Traits::Providers::kBringsEvents) {
      ChannelArena<Traits>* const arena = registry_.arena();
      return arena != nullptr && internal::CaptureHere(*arena, event, registers);
    } else {
      return false;
    }
  }

  // See RegistrationOwner.
  void EndRegistration(void* registered, std::uint64_t thread_id) override {
    if (!IsOfThisProcess()) return EndSuccessorOf(registered);
    if (!MayEndRegistration<Platform>(thread_id, this)) return;
    Thread* thread = static_cast<Thread*>(registered);
    // This store comes first: a session that begins just now, unseen by the next line, must not
    // attach the thread.
    thread->is_ending.store(true, std::memory_order_release);
    if (const Running running = current_.Get()) running->session().Detach(*thread);
    if (UnregisterCallingThread(registry_, thread)) delete this;
  }

  [[nodiscard]] bool IsRunning() const override { return current_.IsRunning(); }
  [[nodiscard]] OwnRegistration FindOwnRegistration() const override {
    Thread* const thread = FindCallingThread(registry_);
    return thread != nullptr ? OwnRegistration{thread, thread->name} : OwnRegistration{};
  }

  absl::Status Start() override {
    const std::lock_guard lock(control_mutex_);
    if (current_.Get() != nullptr) return AlreadyRunning();
    absl::Status status;
    if (!counters_.HasMemoryFor([&] { status = StartLocked(); })) status = OutOfMemory();
    if (status.ok() && *options_.exporter.stop_at_exit) {
      ExitList::Add(registry_.arena()->number(), this, &Platform::AtExit);
      is_listed_ = true;
    }
    if (status.ok() && *options_.exporter.export_on_signal)
      static_cast<void>(counters_.HasMemoryFor([this] { TakeEndingSignals(); }));
    current_.NoteStart(status);
    return status;
  }

  absl::Status Stop() override {
    const std::lock_guard lock(control_mutex_);
    return StopLocked();
  }

  absl::Status ToggleStatus() override {
    if (*options_.sampling.toggle_signal == 0) return absl::OkStatus();
    const std::lock_guard lock(toggle_mutex_);
    absl::Status status;
    if (!counters_.HasMemoryFor([&] { status = TryToAwaitToggle(); })) status = OutOfMemory();
    return status;
  }

  absl::Status Flush() override {
    const std::lock_guard lock(control_mutex_);
    const Running running = current_.Get();
    return running != nullptr ? running->Flush() : NotRunning();
  }

  // Record holds no lock while it waits.
  absl::StatusOr<Profile> Record(const RecordingOptions& options) override {
    absl::StatusOr<Profile> profile;
    if (!counters_.HasMemoryFor([&] { profile = TryToRecord(options); })) profile = OutOfMemory();
    return profile;
  }

  Stats GetStats() override {
    Stats stats;
    if (counters_.HasMemoryFor([&] { stats = CollectStats(); })) return stats;
    Stats none;
    none.out_of_memory = counters_.out_of_memory.load(std::memory_order_relaxed);
    return none;
  }

  std::string Diagnose() override {
    std::string text = "Out of memory.";  // short enough to need no memory
    static_cast<void>(counters_.HasMemoryFor([&] { text = TryToDiagnose(); }));
    return text;
  }

  void Retire() override {
    toggle_.reset();
    static_cast<void>(Stop());
    signal_exit_.reset();
    if (is_exit_using_.load(std::memory_order_acquire)) return;
    const std::size_t left = registry_.Orphan();
    if (left == 0) {
      delete this;
      return;
    }
    // The usual reason: the program ends while its detached threads still run.
    static_cast<void>(HasMemoryFor([left] {
      Platform::WriteLine("strobe: a Profiler was destroyed before " + std::to_string(left) +
                          " thread(s) had ended their Registration");
    }));
  }

 private:
  using Running = typename CurrentSession<RunningSession<Traits>>::Pointer;

  // Requires toggle_mutex_.
  absl::Status TryToAwaitToggle() {
    if (absl::Status status = Usable(); !status.ok()) return status;
    const auto signal = static_cast<int>(*options_.sampling.toggle_signal);
    if (!toggle_) toggle_.emplace(signal, [this] { Toggle(); });
    return toggle_->status();
  }

  // Begins a session, or ends the one that runs, unless the program itself has just done so.
  void Toggle() {
    const absl::Status status = current_.Get() == nullptr ? Start() : Stop();
    if (status.ok() || status == AlreadyRunning() || status == NotRunning()) return;
    static_cast<void>(HasMemoryFor([&] {
      Platform::WriteLine("strobe: after the toggle signal: " + std::string(status.message()));
    }));
  }

  absl::StatusOr<Profile> TryToRecord(const RecordingOptions& options) {
    if (absl::Status status = Validate(options); !status.ok()) return status;
    const Running running = current_.Get();
    if (running == nullptr) return NotRunning();
    return running->Record(options);
  }

  Stats CollectStats() {
    const bool is_running = current_.Get() != nullptr;
    Stats stats;
    stats.outputs = NewAccounts(Traits::Outputs::kFileSuffixes);
    registry_.AddTo(stats);
    counters_.AddTo(stats);
    stats.signals_foreign = GlobalHandlerCounters().foreign.load(std::memory_order_relaxed);
    stats.signals_stale = GlobalHandlerCounters().stale.load(std::memory_order_relaxed);
    const double cpu_hz = *options_.sampling.cpu_frequency_hz;
    stats.requested_rate_hz = cpu_hz > 0 ? cpu_hz : *options_.sampling.wall_frequency_hz;
    stats.max_overhead = *options_.sampling.max_overhead;
    stats.signal_number = signal_.number.load(std::memory_order_relaxed);
    if (!is_running)
      stats.threads_on_timers = stats.threads_on_random_timers = stats.threads_at_instants =
          stats.threads_blocking = 0;  // no collector polls them
    current_.AddExportsTo(stats);
    return stats;
  }

  std::string TryToDiagnose() {
    DiagnosisFacts facts;
    facts.options = options_;
    facts.given_options = GivenOptions(options_, &Platform::EnvironmentVariable);
    facts.stats = CollectStats();
    facts.available = Platform::Available();
    facts.signal = facts.stats.signal_number;
    facts.handler = Platform::HandlerStateOf(facts.signal);
    // If samples come, the new handler calls ours, as the handler of another copy of this library
    // does.
    const bool is_failing = signal_.is_failing.load(std::memory_order_relaxed);
    if (facts.handler == HandlerState::kReplaced && !is_failing)
      facts.handler = HandlerState::kOurs;
    facts.threads_given_up =
        GlobalHandlerCounters().threads_given_up.load(std::memory_order_relaxed);
    current_.AddTo(facts);
    if (facts.is_running)
      facts.unregistered = FindUnregistered<Platform>(registry_.LiveThreadIds());
    return internal::Diagnose(facts);
  }

  [[nodiscard]] absl::Status Usable() const {
    if (!*options_.enabled) return absl::FailedPreconditionError("the profiler is switched off");
    if (absl::Status status = Platform::Available(); !status.ok()) return status;
    if (!options_status_.ok()) return options_status_;
    return *options_.worker.fallback == WorkerFallback::kNone ? no_worker_ : absl::OkStatus();
  }

  absl::StatusOr<Thread*> TryRegister(std::string_view name) {
    if (absl::Status status = Usable(); !status.ok()) return status;
    absl::StatusOr<Thread*> thread =
        RegisterCallingThread(registry_, name, signal_, ThreadNeeds::Of(options_));
    if (!thread.ok()) return thread;
    if (const Running running = current_.Get()) running->Attach(**thread);
    return thread;
  }

  absl::Status StartLocked() {
    if (absl::Status status = Usable(); !status.ok()) return status;
    if (absl::Status status = current_.MakeRoom(); !status.ok()) return status;
    if (absl::Status status = registry_.Open(); !status.ok()) return status;
    const int signal = signal_.template Wanted<Platform>();
    if (absl::Status status = Platform::InstallHandler(signal); !status.ok()) return status;
    signal_.number.store(signal, std::memory_order_relaxed);
    if (!no_worker_.ok())
      Platform::WriteLine("strobe: samples in process: " + std::string(no_worker_.message()));
    const auto running = BeginRunning();
    if (!running.ok()) return running.status();
    current_.Set(*running);
    (*running)->session().Begin();
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<RunningSession<Traits>>> BeginRunning() {
    std::shared_ptr<RunningSession<Traits>> running;
    absl::Status status = OutOfMemory();
    const CurrentRegisters registers;  // of this thread, which waits here
    const StackBounds stack =
        RegistrationLinks() != nullptr ? Platform::CurrentThread().stack : StackBounds();
    const auto begin = [&] {
      static_cast<void>(counters_.HasMemoryFor([&] {
        running = std::make_shared<RunningSession<Traits>>(
            options_, parts_, registry_, loaded_code_, counters_, signal_, maker_);
        // The thread may bring a burst of events before the first drain.
        if (Traits::Providers::kBringsEvents && registers.get() != nullptr)
          loaded_code_.BuildFor(*registers.get(), stack);
        status = running->Begin();
      }));
    };
    if constexpr (kSharesNoFiles<Traits>) {
      Platform::WithOwnFiles(begin);
    } else {
      begin();
    }
    if (!status.ok()) return status;
    return running;
  }

  // Requires control_mutex_. Throws nothing.
  absl::Status StopLocked() {
    const Running running = current_.Get();
    if (running == nullptr) return NotRunning();
    if (std::exchange(is_listed_, false) && !ExitList::Remove(registry_.arena()->number(), this))
      is_exit_using_ = true;
    absl::Status status = running->End();
    current_.Clear();
    return status;
  }

  // The program may exit during a call of this object, even during a call on this very thread. So
  // the wait for the lock has a deadline.
  void StopAtExit() override {
    if (!IsOfThisProcess()) return;
    {
      std::unique_lock lock(control_mutex_, std::defer_lock);
      const auto deadline = std::chrono::steady_clock::now() + StopTimeout(options_.exporter);
      if (LockBy(lock, deadline)) static_cast<void>(StopLocked());
    }
    is_exit_using_.store(false,
                         std::memory_order_release);  // the last access: deletion is allowed now
  }

  void TakeEndingSignals() {
    if (!signal_exit_)
      signal_exit_.emplace(StopTimeout(options_.exporter), [this] { StopForSignal(); });
    signal_exit_->Take();
  }

  // The process ends next, so nothing is freed: the thread that the signal has interrupted may hold
  // the allocator's locks.
  void StopForSignal() {
    std::unique_lock lock(control_mutex_, std::defer_lock);
    const auto deadline = std::chrono::steady_clock::now() + StopTimeout(options_.exporter);
    if (!LockBy(lock, deadline)) return;
    if (is_listed_) static_cast<void>(ExitList::Remove(registry_.arena()->number(), this));
    if (const Running running = current_.Get()) static_cast<void>(running->End());
    lock.release();
  }

  const std::uint64_t fork_count_ = Platform::ForkCount();
  const ProfilerOptions options_;
  const Parts<Traits> parts_;
  const absl::Status options_status_;
  const absl::Status no_worker_;
  SignalInUse signal_{.requested = static_cast<int>(*options_.sampling.signal_number)};
  ThreadRegistry<Traits> registry_;
  const std::shared_ptr<CodeRegistry> code_ = std::make_shared<CodeRegistry>(&Platform::ForkCount);
  CollectorCounters counters_;
  LoadedCode<Traits> loaded_code_{*code_,
                                  counters_.code};  // of all sessions; the arena outlives it

  std::mutex control_mutex_;  // one Start, Stop or Flush at a time; locked while these wait
  bool is_listed_ = false;    // in the ExitList, unless the exit has removed it
  std::atomic<bool> is_exit_using_{false};

  CurrentSession<RunningSession<Traits>> current_{counters_};
  ProfileMaker<Traits> maker_{counters_, [this] { return CollectStats(); }};
  std::mutex toggle_mutex_;
  // The last: their threads use the others.
  std::optional<SignalExit<Platform>> signal_exit_;
  std::optional<SessionToggle<Platform>> toggle_;
};

}  // namespace internal
}  // namespace strobe
