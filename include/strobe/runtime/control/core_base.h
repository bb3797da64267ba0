// CoreBase: what each call of a Profiler does, whether the program drains its samples or a worker
// process does: one call at a time, the exit of the process, signals, and memory that runs out.
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
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/control/abstract_core.h"
#include "strobe/runtime/control/exit_list.h"
#include "strobe/runtime/control/lock_by.h"
#include "strobe/runtime/control/session_toggle.h"
#include "strobe/runtime/control/signal_exit.h"
#include "strobe/runtime/session/session_status.h"
#include "strobe/runtime/threads/calling_thread.h"
#include "strobe/runtime/threads/signal_mask.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A thread that has been registered, and its id.
struct RegisteredHere {
  void* registered = nullptr;
  std::uint64_t thread_id = 0;
};

// Control plane. A core's destructor calls End first. Of what a core adds, the functions that begin
// with Try may run out of memory; none of the others throws.
template <class P>
class CoreBase : public AbstractCore, private StoppedAtExit {
 public:
  using Platform = P;

  [[nodiscard]] bool IsOfThisProcess() const final { return Platform::ForkCount() == fork_count_; }

  Registration RegisterThread(std::string_view name) final {
    absl::StatusOr<RegisteredHere> thread;
    if (!HasMemoryFor([&] { thread = TryRegister(name); })) thread = OutOfMemory();
    if (thread.ok()) return Registration(this, thread->registered, thread->thread_id);
    CountRefused();
    return Registration(thread.status());
  }

  // See RegistrationOwner.
  void EndRegistration(void* registered, std::uint64_t thread_id) final {
    if (!IsOfThisProcess()) return EndSuccessorOf(registered);
    if (!MayEndRegistration<Platform>(thread_id, this)) return;
    if (Unregister(registered, thread_id)) delete this;
  }

  CodeRegistration RegisterCode(const GeneratedCode& code) final {
    CodeRegistration registration;
    const bool has_memory = HasMemoryFor([&] {
      absl::StatusOr<std::shared_ptr<GeneratedCodeOwner>> owner = TryToOpenCode();
      registration =
          owner.ok() ? CodeRegistration(*std::move(owner), code) : CodeRegistration(owner.status());
    });
    return has_memory ? std::move(registration) : CodeRegistration(OutOfMemory());
  }

  absl::Status Start() final {
    const std::lock_guard lock(control_mutex_);
    if (IsRunning()) return AlreadyRunning();
    absl::Status status;
    if (!HasMemoryFor([&] { status = TryToBegin(); })) status = OutOfMemory();
    if (status.ok() && *options_.exporter.stop_at_exit) {
      ExitList::Add(arena_number(), this, &Platform::AtExit);
      is_listed_ = true;
    }
    NoteStart(status);
    return status;
  }

  absl::Status Stop() final {
    const std::lock_guard lock(control_mutex_);
    const absl::Status status = MayStop();
    return status.ok() ? StopLocked() : status;
  }

  absl::Status Flush() final {
    const std::lock_guard lock(control_mutex_);
    return FlushSession();
  }

  absl::StatusOr<Profile> Record(const RecordingOptions& options) final {
    absl::StatusOr<Profile> profile;
    const bool has_memory = HasMemoryFor([&] {
      absl::Status status = Validate(options);
      if (status.ok()) {
        profile = TryToRecord(options);
      } else {
        profile = std::move(status);
      }
    });
    if (!has_memory) profile = OutOfMemory();
    return profile;
  }

  absl::Status DumpLast() final { return Dump(nullptr); }

  absl::Status ToggleStatus() final {
    if (*options_.sampling.toggle_signal == 0 && *options_.keep.dump_signal == 0)
      return absl::OkStatus();
    const std::lock_guard lock(toggle_mutex_);
    absl::Status status;
    if (!HasMemoryFor([&] { status = TryToAwaitToggle(); })) status = OutOfMemory();
    return status;
  }

  Stats GetStats() final {
    Stats stats;
    if (HasMemoryFor([&] { stats = TryToCollectStats(); })) return stats;
    Stats none;
    AddOwnTo(none);
    return none;
  }

  std::string Diagnose() final {
    std::string text = "Out of memory.";  // short enough to need no memory
    static_cast<void>(HasMemoryFor([&] { text = TryToDiagnose(); }));
    return text;
  }

  void Retire() final {
    End();
    if (is_exit_using_.load(std::memory_order_acquire)) return;
    const std::size_t left = Orphan();
    if (left == 0) {
      delete this;
      return;
    }
    // The usual reason: the program ends while its detached threads still run.
    static_cast<void>(internal::HasMemoryFor([left] {
      Platform::WriteLine("strobe: a Profiler was destroyed before " + std::to_string(left) +
                          " thread(s) had ended their Registration");
    }));
  }

 protected:
  // `options` are final: the environment has been applied.
  explicit CoreBase(ProfilerOptions options)
      : options_(std::move(options)),
        options_status_(Validate(options_)),
        signal_{.requested = static_cast<int>(*options_.sampling.signal_number)} {}

  // Stops the session for good, on whichever thread, and awaits the object's own threads.
  void End() {
    is_ending_->store(true, std::memory_order_relaxed);
    dump_toggle_.reset();
    toggle_.reset();
    {
      const std::lock_guard lock(control_mutex_);
      static_cast<void>(StopLocked());
    }
    signal_exit_.reset();
  }

  // Why the profiler cannot be used, by its options or its system.
  [[nodiscard]] virtual absl::Status Usable() const {
    if (!*options_.enabled) return absl::FailedPreconditionError("the profiler is switched off");
    if (absl::Status status = Platform::Available(); !status.ok()) return status;
    return options_status_;
  }

  // A session that has begun is to end, too, when a signal ends the process. Requires
  // control_mutex().
  void TakeEndingSignals() {
    static_cast<void>(HasMemoryFor([this] {
      if (!signal_exit_) signal_exit_.emplace(StopPatience(), [this] { StopForSignal(); });
      signal_exit_->Take();
    }));
  }

  // Runs `body`. If memory runs out in it, counts that and returns false. Callable from any thread.
  template <class Body>
  [[nodiscard]] bool HasMemoryFor(Body&& body) {
    if (internal::HasMemoryFor(body)) return true;
    out_of_memory_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Adds what needs no memory: the calls that memory has failed, and the signals of the process.
  virtual void AddOwnTo(Stats& stats) const {
    stats.out_of_memory += out_of_memory_.load(std::memory_order_relaxed);
    stats.signals_foreign = GlobalHandlerCounters().foreign.load(std::memory_order_relaxed);
    stats.signals_stale = GlobalHandlerCounters().stale.load(std::memory_order_relaxed);
    stats.signal_number = signal_.number.load(std::memory_order_relaxed);
  }

  [[nodiscard]] const ProfilerOptions& options() const { return options_; }
  [[nodiscard]] SignalInUse& signal() { return signal_; }
  // One Start, Stop or Flush at a time: locked while these wait.
  [[nodiscard]] std::mutex& control_mutex() { return control_mutex_; }

 private:
  // The threads that are registered.
  virtual absl::StatusOr<RegisteredHere> TryRegister(std::string_view name) = 0;
  // A thread that was refused.
  virtual void CountRefused() = 0;
  // True if the object has been orphaned and this was its last thread.
  virtual bool Unregister(void* registered, std::uint64_t thread_id) = 0;
  // The Profiler is gone, but for its registrations: returns how many are left.
  virtual std::size_t Orphan() = 0;
  // What owns the code that is registered, once it can.
  virtual absl::StatusOr<std::shared_ptr<GeneratedCodeOwner>> TryToOpenCode() = 0;

  // The session. Callable from any thread.
  [[nodiscard]] virtual Stats TryToCollectStats() = 0;
  [[nodiscard]] virtual std::string TryToDiagnose() = 0;
  // Holds no lock while it waits.
  [[nodiscard]] virtual absl::StatusOr<Profile> TryToRecord(const RecordingOptions& options) = 0;
  // The same for DumpLast. If `cancelled` becomes true, it need not wait any longer; may be null.
  [[nodiscard]] virtual absl::Status TryToDump(
      const std::shared_ptr<const std::atomic<bool>>& cancelled) = 0;
  // Each of the others requires control_mutex().
  virtual absl::Status TryToBegin() = 0;
  // What a Start has returned.
  virtual void NoteStart(const absl::Status& status) = 0;
  // OK, or why the calling thread cannot stop the session.
  [[nodiscard]] virtual absl::Status MayStop() const { return absl::OkStatus(); }
  virtual absl::Status FlushSession() = 0;
  // Ends the session that runs. If the process ends next, the thread that a signal has interrupted
  // may hold the allocator's locks: what can be left is not freed.
  virtual absl::Status EndSession(bool ends_process) = 0;
  // Of the session's area, while it runs.
  [[nodiscard]] virtual std::size_t arena_number() const = 0;
  // How long the end of the process waits for the session's.
  [[nodiscard]] virtual std::chrono::nanoseconds StopPatience() const = 0;

  // Requires toggle_mutex_.
  absl::Status TryToAwaitToggle() {
    if (absl::Status status = Usable(); !status.ok()) return status;
    absl::Status status;
    const auto await = [&](const char* option, std::int64_t signal, auto& toggle,
                           void (CoreBase::*act)()) {
      if (signal == 0) return;
      if (!toggle)
        toggle.emplace(option, static_cast<int>(signal), [this, act] { (this->*act)(); });
      status.Update(toggle->status());
    };
    await("sampling.toggle_signal", *options_.sampling.toggle_signal, toggle_, &CoreBase::Toggle);
    await("keep.dump_signal", *options_.keep.dump_signal, dump_toggle_, &CoreBase::DumpForSignal);
    return status;
  }

  // On the toggle's thread. Begins a session, or ends the one that runs, unless the program itself
  // has just done so.
  void Toggle() {
    const absl::Status status = IsRunning() ? Stop() : Start();
    if (status.ok() || status == AlreadyRunning() || status == NotRunning()) return;
    WarnAfterSignal("toggle", status);
  }

  // On the dump signal's thread.
  void DumpForSignal() {
    const absl::Status status = Dump(is_ending_);
    if (!status.ok() && !is_ending_->load(std::memory_order_relaxed))
      WarnAfterSignal("dump", status);
  }

  absl::Status Dump(const std::shared_ptr<const std::atomic<bool>>& cancelled) {
    absl::Status status;
    if (!HasMemoryFor([&] { status = TryToDump(cancelled); })) status = OutOfMemory();
    return status;
  }

  static void WarnAfterSignal(const char* signal, const absl::Status& status) {
    static_cast<void>(internal::HasMemoryFor([&] {
      Platform::WriteLine(std::string("strobe: after the ") + signal +
                          " signal: " + std::string(status.message()));
    }));
  }

  // Requires control_mutex_.
  absl::Status StopLocked() {
    if (!IsRunning()) return NotRunning();
    if (std::exchange(is_listed_, false) && !ExitList::Remove(arena_number(), this))
      is_exit_using_ = true;
    return EndSession(/*ends_process=*/false);
  }

  [[nodiscard]] std::chrono::steady_clock::time_point Deadline() const {
    return std::chrono::steady_clock::now() + StopPatience();
  }

  // The program may exit during a call of this object, even during a call on this very thread. So
  // the wait for the lock has a deadline.
  void StopAtExit() final {
    if (!IsOfThisProcess()) return;
    {
      std::unique_lock lock(control_mutex_, std::defer_lock);
      if (LockBy(lock, Deadline())) static_cast<void>(StopLocked());
    }
    is_exit_using_.store(false,
                         std::memory_order_release);  // the last access: deletion is allowed now
  }

  // The process ends next.
  void StopForSignal() {
    std::unique_lock lock(control_mutex_, std::defer_lock);
    if (!LockBy(lock, Deadline())) return;
    if (is_listed_) static_cast<void>(ExitList::Remove(arena_number(), this));
    if (IsRunning()) static_cast<void>(EndSession(/*ends_process=*/true));
    lock.release();
  }

  const std::uint64_t fork_count_ = Platform::ForkCount();
  const ProfilerOptions options_;
  const absl::Status options_status_;
  SignalInUse signal_;
  std::atomic<std::uint64_t> out_of_memory_{0};

  std::mutex control_mutex_;
  bool is_listed_ = false;  // in the ExitList, unless the exit has removed it
  std::atomic<bool> is_exit_using_{false};

  const std::shared_ptr<std::atomic<bool>> is_ending_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex toggle_mutex_;
  // Their threads use the others.
  std::optional<SignalExit<Platform>> signal_exit_;
  std::optional<SessionToggle<Platform>> toggle_;
  std::optional<SessionToggle<Platform>> dump_toggle_;
};

}  // namespace internal
}  // namespace strobe
