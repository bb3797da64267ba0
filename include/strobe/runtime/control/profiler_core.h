// ProfilerCore: the calls of a Profiler whose samples the program itself drains.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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
#include "strobe/runtime/control/core_base.h"
#include "strobe/runtime/control/current_session.h"
#include "strobe/runtime/control/diagnosis.h"
#include "strobe/runtime/session/output_accounts.h"
#include "strobe/runtime/session/profile_maker.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/runtime/session/running_session.h"
#include "strobe/runtime/session/unregistered_check.h"
#include "strobe/runtime/threads/calling_thread.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

template <class Traits>
class ProfilerCore final : public CoreBase<typename Traits::Platform> {
 public:
  using Base = CoreBase<typename Traits::Platform>;
  using Platform = typename Traits::Platform;
  using Thread = RegisteredThread<Traits>;

  // `options` are final: the environment has been applied. `no_worker` says why this core takes the
  // place of one with a worker; OK if it does not.
  explicit ProfilerCore(ProfilerOptions options, Parts<Traits> parts = {},
                        absl::Status no_worker = absl::OkStatus())
      : Base(std::move(options)),
        parts_(std::move(parts)),
        no_worker_(std::move(no_worker)),
        registry_(static_cast<std::size_t>(*this->options().threads.max_threads),
                  static_cast<std::size_t>(*this->options().threads.ring_bytes)) {}
  ~ProfilerCore() override { this->End(); }  // no thread may be registered

  bool CaptureHere([[maybe_unused]] const EventSample& event,
                   [[maybe_unused]] const NativeRegisters* registers) noexcept override {
    if constexpr (Traits::Providers::kBringsEvents) {
      ChannelArena<Traits>* const arena = registry_.arena();
      return arena != nullptr && internal::CaptureHere(*arena, event, registers);
    } else {
      return false;
    }
  }

  [[nodiscard]] bool IsRunning() const override { return current_.IsRunning(); }
  [[nodiscard]] AbstractCore::OwnRegistration FindOwnRegistration() const override {
    Thread* const thread = FindCallingThread(registry_);
    if (thread == nullptr) return {};
    return {.registered = thread, .name = thread->name};
  }

 private:
  using Running = typename CurrentSession<RunningSession<Traits>>::Pointer;

  [[nodiscard]] absl::Status Usable() const override {
    absl::Status status = Base::Usable();
    const bool needs_worker = *this->options().worker.fallback == WorkerFallback::kNone;
    return status.ok() && needs_worker ? no_worker_ : status;
  }

  absl::StatusOr<RegisteredHere> TryRegister(std::string_view name) override {
    if (absl::Status status = Usable(); !status.ok()) return status;
    const absl::StatusOr<Thread*> thread =
        RegisterCallingThread(registry_, name, this->signal(), ThreadNeeds::Of(this->options()));
    if (!thread.ok()) return thread.status();
    if (const Running running = current_.Get()) running->Attach(**thread);
    return RegisteredHere{.registered = *thread, .thread_id = (*thread)->channel->thread_id};
  }
  void CountRefused() override { registry_.CountRefused(); }

  bool Unregister(void* registered, std::uint64_t /*thread_id*/) override {
    Thread* thread = static_cast<Thread*>(registered);
    // This store comes first: a session that begins just now, unseen by the next line, must not
    // attach the thread.
    thread->is_ending.store(true, std::memory_order_release);
    if (const Running running = current_.Get()) running->session().Detach(*thread);
    return UnregisterCallingThread(registry_, thread);
  }
  std::size_t Orphan() override { return registry_.Orphan(); }

  absl::StatusOr<std::shared_ptr<GeneratedCodeOwner>> TryToOpenCode() override {
    if (absl::Status status = Usable(); !status.ok()) return status;
    return code_;
  }

  void NoteStart(const absl::Status& status) override { current_.NoteStart(status); }
  [[nodiscard]] std::size_t arena_number() const override { return registry_.arena()->number(); }
  [[nodiscard]] std::chrono::nanoseconds StopPatience() const override {
    return StopTimeout(this->options().exporter);
  }

  absl::Status TryToBegin() override {
    if (absl::Status status = Usable(); !status.ok()) return status;
    if (absl::Status status = current_.MakeRoom(); !status.ok()) return status;
    if (absl::Status status = registry_.Open(); !status.ok()) return status;
    SignalInUse& in_use = this->signal();
    const int signal = in_use.template Wanted<Platform>();
    if (absl::Status status = Platform::InstallHandler(signal); !status.ok()) return status;
    in_use.number.store(signal, std::memory_order_relaxed);
    if (!no_worker_.ok())
      Platform::WriteLine("strobe: samples in process: " + std::string(no_worker_.message()));
    const auto running = BeginRunning();
    if (!running.ok()) return running.status();
    current_.Set(*running);
    (*running)->session().Begin();
    if (*this->options().exporter.export_on_signal) this->TakeEndingSignals();
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<RunningSession<Traits>>> BeginRunning() {
    std::shared_ptr<RunningSession<Traits>> running;
    absl::Status status = OutOfMemory();
    const CurrentRegisters registers;  // of this thread, which waits here
    const StackBounds stack =
        RegistrationLinks() != nullptr ? Platform::CurrentThread().stack : StackBounds();
    const auto begin = [&] {
      static_cast<void>(this->HasMemoryFor([&] {
        running = std::make_shared<RunningSession<Traits>>(
            this->options(), parts_, registry_, loaded_code_, counters_, this->signal(), maker_);
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

  absl::Status FlushSession() override {
    const Running running = current_.Get();
    return running != nullptr ? running->Flush() : NotRunning();
  }

  absl::Status EndSession(bool ends_process) override {
    absl::Status status = current_.Get()->End();
    if (!ends_process) current_.Clear();
    return status;
  }

  [[nodiscard]] absl::StatusOr<Profile> TryToRecord(const RecordingOptions& options) override {
    const Running running = current_.Get();
    if (running == nullptr) return NotRunning();
    return running->Record(options);
  }
  [[nodiscard]] absl::Status TryToDump(
      const std::shared_ptr<const std::atomic<bool>>& /*cancelled*/) override {
    const Running running = current_.Get();
    return running != nullptr ? running->DumpLast() : NotRunning();
  }

  void AddOwnTo(Stats& stats) const override {
    Base::AddOwnTo(stats);
    stats.out_of_memory += counters_.out_of_memory.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Stats TryToCollectStats() override {
    const bool is_running = IsRunning();
    Stats stats;
    stats.outputs = NewAccounts(Traits::Outputs::kFileSuffixes);
    registry_.AddTo(stats);
    counters_.AddTo(stats);
    Base::AddOwnTo(stats);
    const SamplingOptions& sampling = this->options().sampling;
    const double cpu_hz = *sampling.cpu_frequency_hz;
    stats.requested_rate_hz = cpu_hz > 0 ? cpu_hz : *sampling.wall_frequency_hz;
    stats.max_overhead = *sampling.max_overhead;
    if (!is_running)
      stats.threads_on_timers = stats.threads_on_random_timers = stats.threads_at_instants =
          stats.threads_blocking = 0;  // no collector polls them
    current_.AddExportsTo(stats);
    return stats;
  }

  [[nodiscard]] std::string TryToDiagnose() override {
    DiagnosisFacts facts;
    facts.options = this->options();
    facts.given_options = GivenOptions(facts.options, &Platform::EnvironmentVariable);
    facts.stats = TryToCollectStats();
    facts.available = Platform::Available();
    facts.signal = facts.stats.signal_number;
    facts.handler = Platform::HandlerStateOf(facts.signal);
    // If samples come, the new handler calls ours, as the handler of another copy of this library
    // does.
    const bool is_failing = this->signal().is_failing.load(std::memory_order_relaxed);
    if (facts.handler == HandlerState::kReplaced && !is_failing)
      facts.handler = HandlerState::kOurs;
    facts.threads_given_up =
        GlobalHandlerCounters().threads_given_up.load(std::memory_order_relaxed);
    current_.AddTo(facts);
    if (facts.is_running)
      facts.unregistered = FindUnregistered<Platform>(registry_.LiveThreadIds());
    return internal::Diagnose(facts);
  }

  const Parts<Traits> parts_;
  const absl::Status no_worker_;
  ThreadRegistry<Traits> registry_;
  const std::shared_ptr<CodeRegistry> code_ = std::make_shared<CodeRegistry>(&Platform::ForkCount);
  CollectorCounters counters_;
  LoadedCode<Traits> loaded_code_{*code_,
                                  counters_.code};  // of all sessions; the arena outlives it
  CurrentSession<RunningSession<Traits>> current_{counters_};
  ProfileMaker<Traits> maker_{counters_, [this] { return TryToCollectStats(); }};
};

}  // namespace internal
}  // namespace strobe
