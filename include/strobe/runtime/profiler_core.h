// ProfilerCore: the parts of a Profiler put together. It is some 470 lines long because every call
// of a Profiler stands here, and what is left of it where memory runs out.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/assert.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/export/parts.h"
#include "strobe/runtime/abstract_core.h"
#include "strobe/runtime/code_registry.h"
#include "strobe/runtime/collector.h"
#include "strobe/runtime/delivery_check.h"
#include "strobe/runtime/diagnosis.h"
#include "strobe/runtime/exit_list.h"
#include "strobe/runtime/export_worker.h"
#include "strobe/runtime/loaded_code.h"
#include "strobe/runtime/session.h"
#include "strobe/runtime/thread_registry.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Exporters left behind by Stop that may hang at a time; Start refuses to add to them.
inline constexpr std::size_t kMaxAbandonedExporters = 4;

// later - earlier, for the counters; what is a state and no counter stays as it is in `later`.
Stats StatsBetween(const Stats& earlier, const Stats& later);
// Takes the mutex, by the deadline at the latest; false where it could not be had.
bool LockBy(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline);
// Adds the counters of `more` that an ExportWorker keeps.
void AddExports(Stats& stats, const Stats& more);

template <class Traits>
class ProfilerCore final : public AbstractCore, private StoppedAtExit {
 public:
  using Platform = typename Traits::Platform;
  using Slot = RegisteredThread<Traits>;

  // `options` as they are to be.
  explicit ProfilerCore(ProfilerOptions options, Parts<Traits> parts = {})
      : options_(std::move(options)),
        parts_(std::move(parts)),
        options_status_(Validate(options_)),
        registry_(static_cast<std::size_t>(*options_.threads.max_threads),
                  static_cast<std::size_t>(*options_.threads.ring_bytes)) {}

  ~ProfilerCore() override { static_cast<void>(Stop()); }  // no thread may be registered

  [[nodiscard]] bool IsOfThisProcess() const override {
    return Platform::ForkCount() == fork_count_;
  }

  Registration RegisterThread(std::string_view name) override {
    absl::StatusOr<Slot*> slot;
    if (!counters_.HasMemoryFor([&] { slot = TryRegister(name); })) slot = OutOfMemory();
    if (slot.ok()) return Registration(this, *slot, (*slot)->channel->thread_id);
    registry_.CountRefused();
    return Registration(slot.status());
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

  // A RegistrationOwner's.
  void EndRegistration(void* registered, std::uint64_t thread_id) override {
    if (!IsOfThisProcess()) return;
    STROBE_CHECK(thread_id == Platform::CurrentThreadId(),
                 "a Registration ended on another thread than it began on");
    Slot* slot = static_cast<Slot*>(registered);
    // First of all: a session that begins just now, and is not seen in the next line, must not
    // attach the slot after it.
    slot->is_ending.store(true, std::memory_order_release);
    if (const auto session = CopyRunning().session) session->Detach(*slot);
    // Captures run on this thread, so none is under way. One that the thread's cancellation ended
    // has left its mark.
    if constexpr (!Platform::kCopiesStacks)
      slot->channel->is_capturing.store(false, std::memory_order_relaxed);
    RestoreMask<Platform>(*slot);
    ThreadLink** link = &ThreadLinks();
    while (*link != slot) link = &(*link)->next;
    *link = slot->next;
    if (registry_.Unregister(slot)) delete this;
  }

  absl::Status Start() override {
    const std::lock_guard lock(control_mutex_);
    if (CopyRunning().session != nullptr)
      return MakeStatus(absl::StatusCode::kFailedPrecondition, "the profiler is already running");
    absl::Status status;
    if (!counters_.HasMemoryFor([&] { status = StartLocked(); })) status = OutOfMemory();
    if (status.ok() && *options_.exporter.stop_at_exit) {
      ExitList::Add(registry_.arena()->number(), this, &Platform::AtExit);
      is_listed_ = true;
    }
    const std::lock_guard running_lock(running_mutex_);
    was_started_ = true;
    last_start_ = status;
    return status;
  }

  absl::Status Stop() override {
    const std::lock_guard lock(control_mutex_);
    return StopLocked();
  }

  absl::Status Flush() override {
    const std::lock_guard lock(control_mutex_);
    const Running running = CopyRunning();
    if (running.session == nullptr) return NotRunning();
    const auto deadline = ExportDeadline();
    const std::uint64_t failures = counters_.out_of_memory.load(std::memory_order_relaxed);
    absl::Status status;
    while (true) {
      // What failed before goes first; and the collector may end a period by itself just now.
      if (!running.worker->IsIdle()) {
        running.worker->Retry();
        status = running.worker->Wait(deadline);
        if (!status.ok() && !running.worker->HasRoom()) return status;
      }
      if (collector_->EndPeriod(deadline)) {
        status.Update(running.worker->Wait(deadline));
        return status;
      }
      if (counters_.out_of_memory.load(std::memory_order_relaxed) != failures) return OutOfMemory();
      if (std::chrono::steady_clock::now() >= deadline) {
        return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                          "the collector has not answered in time");
      }
    }
  }

  Stats GetStats() override {
    Stats stats;
    if (counters_.HasMemoryFor([&] { stats = CollectStats(); })) return stats;
    Stats none;
    none.out_of_memory = counters_.out_of_memory.load(std::memory_order_relaxed);
    return none;
  }

  std::string Diagnose() override {
    std::string text = "Out of memory.";  // short enough to need none
    static_cast<void>(counters_.HasMemoryFor([&] { text = TryToDiagnose(); }));
    return text;
  }

  void Retire() override {
    static_cast<void>(Stop());
    if (is_exit_using_.load(std::memory_order_acquire)) return;
    const std::size_t left = registry_.Orphan();
    if (left == 0) {
      delete this;
      return;
    }
    // Mostly at the end of a program whose detached threads run on.
    static_cast<void>(HasMemoryFor([left] {
      Platform::WriteLine("strobe: a Profiler was destroyed before " + std::to_string(left) +
                          " thread(s) had ended their Registration");
    }));
  }

 private:
  struct Running {
    std::shared_ptr<Session<Traits>> session;
    std::shared_ptr<ExportWorker<Traits>> worker;
  };

  static absl::Status NotRunning() {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "the profiler is not running");
  }

  Stats CollectStats() {
    const Running running = CopyRunning();
    Stats stats;
    stats.outputs = NewAccount(Traits::Outputs::kFileSuffixes);
    registry_.AddTo(stats);
    counters_.AddTo(stats);
    stats.signals_foreign = GlobalHandlerCounters().foreign.load(std::memory_order_relaxed);
    stats.signals_stale = GlobalHandlerCounters().stale.load(std::memory_order_relaxed);
    const double cpu_hz = *options_.sampling.cpu_frequency_hz;
    stats.asked_rate_hz = cpu_hz > 0 ? cpu_hz : *options_.sampling.wall_frequency_hz;
    stats.signal_number = signal_.number.load(std::memory_order_relaxed);
    if (running.session == nullptr)
      stats.threads_on_fallback = stats.threads_blocking = 0;  // no collector polls them
    const std::lock_guard lock(running_mutex_);
    AddExports(stats, ended_exports_);
    for (const auto& worker : ended_workers_) AddExportsOf(*worker, stats);
    if (running.worker != nullptr && running_.worker == running.worker)
      AddExportsOf(*running.worker, stats);
    return stats;
  }

  std::string TryToDiagnose() {
    DiagnosisFacts facts;
    facts.options = options_;
    facts.stats = CollectStats();
    facts.available = Platform::Available();
    facts.signal = facts.stats.signal_number;
    facts.handler = Platform::HandlerStateOf(facts.signal);
    // Where samples come, it calls ours: another copy of this library does.
    const bool is_failing = signal_.is_failing.load(std::memory_order_relaxed);
    if (facts.handler == HandlerState::kReplaced && !is_failing)
      facts.handler = HandlerState::kOurs;
    facts.threads_given_up =
        GlobalHandlerCounters().threads_given_up.load(std::memory_order_relaxed);
    const std::lock_guard lock(running_mutex_);
    facts.last_start = last_start_;
    facts.was_started = was_started_;
    facts.is_running = running_.session != nullptr;
    return internal::Diagnose(facts);
  }

  [[nodiscard]] absl::Status Usable() const {
    if (!*options_.enabled) return absl::FailedPreconditionError("the profiler is switched off");
    absl::Status status = Platform::Available();
    return status.ok() ? options_status_ : status;
  }

  absl::StatusOr<Slot*> TryRegister(std::string_view name) {
    if (absl::Status status = Usable(); !status.ok()) return status;
    if (absl::Status status = registry_.Open(); !status.ok()) return status;
    const std::uint8_t arena = registry_.arena()->number();
    for (const ThreadLink* link = ThreadLinks(); link != nullptr; link = link->next) {
      // Not by its number alone: the link may be of a registration that a fork has left to the
      // parent.
      if (link->token->arena != arena) continue;
      const auto* const channel = registry_.arena()->Find(link->token->index);
      if (channel != nullptr && &channel->token == link->token)
        return absl::AlreadyExistsError("this thread is registered with this profiler already");
    }
    absl::StatusOr<Slot*> slot =
        registry_.Register(Platform::CurrentThread(), SanitizedThreadName(name), [this](Slot& own) {
          LookAtMask<Platform>(own, signal_, *options_.sampling.unblock_signal);
        });
    if (!slot.ok()) return slot;
    // A signal may come between any two of these stores: the list is whole at each.
    (*slot)->next = ThreadLinks();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ThreadLinks() = *slot;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (const auto session = CopyRunning().session) session->Attach(**slot);
    return slot;
  }

  absl::Status StartLocked() {
    if (absl::Status status = Usable(); !status.ok()) return status;
    {
      const std::lock_guard lock(running_mutex_);
      SettleEndedWorkers();
      if (ended_workers_.size() >= kMaxAbandonedExporters)
        return absl::ResourceExhaustedError("exporters of earlier sessions still hang");
      ended_workers_.reserve(kMaxAbandonedExporters);  // Stop takes no memory for that
    }
    if (absl::Status status = registry_.Open(); !status.ok()) return status;
    const int signal = signal_.template Wanted<Platform>();
    if (absl::Status status = Platform::InstallHandler(signal); !status.ok()) return status;
    signal_.number.store(signal, std::memory_order_relaxed);
    Running running;
    running.session =
        std::make_shared<Session<Traits>>(options_, registry_, loaded_code_, counters_, signal);
    if (!running.session->has_provider()) {
      return absl::InvalidArgumentError(
          "sampling.cpu_frequency_hz and sampling.wall_frequency_hz: no provider is enabled");
    }
    running.worker = std::make_shared<ExportWorker<Traits>>(options_.exporter, parts_);
    Session<Traits>* session = running.session.get();
    ExportWorker<Traits>* worker = running.worker.get();
    auto collector = std::make_unique<Collector<Traits>>(
        options_, *session, counters_,
        typename Collector<Traits>::Callbacks{
            .end_period = [this, session, worker] { return EndPeriod(*session, *worker); },
            .check_handler =
                [check = DeliveryCheck<Traits, Session<Traits>>(
                     *session, registry_, counters_, signal_)]() mutable { check.Run(); }});
    at_period_begin_ = CollectStats();
    if (!worker->Begin())
      return absl::ResourceExhaustedError("the system refuses another thread for the exporter");
    // From here on nothing may throw: there is a thread.
    registry_.BeginCollecting();
    if (!collector->Begin()) {
      session->FinishAll();
      static_cast<void>(worker->End(ExportDeadline()));
      return absl::ResourceExhaustedError("the system refuses another thread for the collector");
    }
    collector_ = std::move(collector);
    {
      const std::lock_guard lock(running_mutex_);
      running_ = running;
    }
    session->Begin();
    return absl::OkStatus();
  }

  // Under control_mutex_. Throws nothing: what there is no memory for is dropped, and counted.
  absl::Status StopLocked() {
    const Running running = CopyRunning();
    if (running.session == nullptr) return NotRunning();
    if (std::exchange(is_listed_, false) && !ExitList::Remove(registry_.arena()->number(), this))
      is_exit_using_ = true;
    running.session->End();
    collector_->End();
    running.session->FinishAll();
    absl::Status status = SubmitPeriod(*running.session, *running.worker);
    if (!status.ok()) running.session->CountPeriodDropped();
    collector_.reset();
    status.Update(running.worker->End(ExportDeadline()));
    const std::lock_guard running_lock(running_mutex_);
    ended_workers_.push_back(running.worker);
    SettleEndedWorkers();
    running_ = {};
    return status;
  }

  // The program may exit in the middle of a call of ours, even in one of this very thread.
  void StopAtExit() override {
    if (!IsOfThisProcess()) return;
    {
      std::unique_lock lock(control_mutex_, std::defer_lock);
      if (LockBy(lock, ExportDeadline())) static_cast<void>(StopLocked());
    }
    is_exit_using_.store(false,
                         std::memory_order_release);  // the last touch: now it may be deleted
  }

  static void AddExportsOf(const ExportWorker<Traits>& worker, Stats& stats) {
    Stats exports;
    worker.AddTo(exports);
    AddExports(stats, exports);
  }

  // Under running_mutex_.
  void SettleEndedWorkers() {
    std::erase_if(ended_workers_, [this](const auto& worker) {
      return worker->HasEnded() && counters_.HasMemoryFor([&] {
        Stats sum = ended_exports_;
        AddExportsOf(*worker, sum);
        ended_exports_ = std::move(sum);
      });
    });
  }

  // On the collector's thread.
  bool EndPeriod(Session<Traits>& session, ExportWorker<Traits>& worker) {
    if (!worker.HasRoom()) {
      worker.Retry();
    } else if (SubmitPeriod(session, worker).ok()) {
      return true;
    }
    counters_.periods_extended.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Where memory runs out, the period goes on.
  absl::Status SubmitPeriod(Session<Traits>& session, ExportWorker<Traits>& worker) {
    std::unique_ptr<ExportJob> job;
    if (!counters_.HasMemoryFor([&] { job = MakeJob(session); })) return OutOfMemory();
    worker.Submit(std::move(job));
    return absl::OkStatus();
  }

  // The period is taken last, when nothing else can fail.
  std::unique_ptr<ExportJob> MakeJob(Session<Traits>& session) {
    auto job = std::make_unique<ExportJob>();
    job->columns = session.EnabledColumns();
    Stats now = CollectStats();
    Profile& profile = job->profile;
    constexpr auto kTypes = Traits::Providers::AllValueTypes();
    profile.value_types.assign(kTypes.begin(), kTypes.end());
    // A viewer shows first what the first provider measures: its last column, after any count.
    const std::size_t first_columns = session.first_enabled_columns();
    profile.default_value_type = first_columns - 1;
    profile.period_type = kTypes[job->columns[first_columns - 1]];
    profile.period = session.period_ns();
    profile.program = Platform::ProgramName();
    profile.process_id = Platform::ProcessId();
    profile.stats = StatsBetween(at_period_begin_, now);
    profile.stats.asked_rate_hz =
        session.period_ns() > 0 ? 1e9 / static_cast<double>(session.period_ns()) : 0;
    auto period = session.TakePeriod();
    profile.time_ns = period.time_ns;
    profile.duration_ns = period.duration_ns;
    profile.sequence = sequence_++;
    job->samples = std::move(period.samples);
    at_period_begin_ = std::move(now);
    return job;
  }

  [[nodiscard]] std::chrono::steady_clock::time_point ExportDeadline() const {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(
                                                  *options_.exporter.stop_timeout_s * 1e3));
  }

  Running CopyRunning() {
    const std::lock_guard lock(running_mutex_);
    return running_;
  }

  const std::uint64_t fork_count_ = Platform::ForkCount();
  const ProfilerOptions options_;
  const Parts<Traits> parts_;
  const absl::Status options_status_;
  SignalInUse signal_{.asked = static_cast<int>(*options_.sampling.signal_number)};
  ThreadRegistry<Traits> registry_;
  const std::shared_ptr<CodeRegistry> code_ = std::make_shared<CodeRegistry>(&Platform::ForkCount);
  CollectorCounters counters_;
  LoadedCode<Traits> loaded_code_{*code_, counters_};  // of all sessions; goes before the arena

  std::mutex control_mutex_;  // one Start, Stop or Flush at a time; held while they wait
  bool is_listed_ = false;    // in the ExitList, as far as we know
  std::atomic<bool> is_exit_using_{false};
  std::unique_ptr<Collector<Traits>> collector_;

  std::mutex running_mutex_;  // never held over a wait
  Running running_;
  absl::Status last_start_;
  bool was_started_ = false;
  std::vector<std::shared_ptr<ExportWorker<Traits>>>
      ended_workers_;    // of sessions that have ended, while they hang
  Stats ended_exports_;  // of those that are gone

  // The collector's, or Stop's after it.
  std::uint64_t sequence_ = 0;
  Stats at_period_begin_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
