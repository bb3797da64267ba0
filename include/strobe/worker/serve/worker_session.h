// WorkerSession: the session of a program that a worker serves.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/export/parts.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/runtime/code/code_registry.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/session/delivery_check.h"
#include "strobe/runtime/session/ended_exports.h"
#include "strobe/runtime/session/output_accounts.h"
#include "strobe/runtime/session/profile_maker.h"
#include "strobe/runtime/session/running_session.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/worker/serve/registration_keeper.h"
#include "strobe/worker/serve/worker_code.h"
#include "strobe/worker/serve/worker_platform.h"
#include "strobe/worker/serve/worker_recordings.h"
#include "strobe/worker/shared/handshake.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The parts of `Traits`, for the threads of another process.
template <class Traits>
struct WorkerTraitsOf : Traits {
  using Platform = WorkerPlatform;
};

// The same session as in a program: its collector drains the channels in the shared area. One more
// thread, the attendant, begins and ends the accounts of the threads whose registrations change.
template <class Base>
class WorkerSession {
 public:
  using Traits = WorkerTraitsOf<Base>;

  // The program that WorkerPlatform serves. `options` must be valid. `leave` is called, on a thread
  // of the session, when the program has lost this worker: see IsWantedBack. End comes next.
  WorkerSession(
      const ProfilerOptions& options, const Parts<Base>& parts, const SharedArea& area, int signal,
      std::function<void()> leave = [] {})
      : area_(area),
        leave_(std::move(leave)),
        options_(options),
        parts_(parts),
        signal_{.requested = signal},
        registry_(static_cast<std::size_t>(*options.threads.max_threads),
                  static_cast<std::size_t>(*options.threads.ring_bytes)) {}

  // Its threads end with it, whatever became of the program.
  ~WorkerSession() {
    if (keeper_thread_.IsRunning()) static_cast<void>(End([] { return std::string(); }));
  }
  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  absl::Status Begin() {
    if (absl::Status status = registry_.Open(); !status.ok()) return status;
    signal_.number.store(signal_.requested, std::memory_order_relaxed);
    running_ = std::make_unique<RunningSession<Traits>>(options_, parts_, registry_, code_,
                                                        counters_, signal_, maker_);
    if (absl::Status status = running_->Begin(); !status.ok()) return status;
    CountLoss();
    running_->session().Begin();
    CountLostEvents();
    keeper_thread_ =
        WorkerPlatform::RunOnOwnThread("strobe-attend", [this] { KeepRegistrations(); });
    absl::Status status = StatusOfThread("the worker", keeper_thread_);
    if (!status.ok()) static_cast<void>(running_->End());
    return status;
  }

  absl::Status Flush() { return running_->Flush(); }

  // See WorkerRecordings.
  void Record(const Message& message) {
    recordings_.Begin(message, [this](const RecordingRequest& request) -> absl::StatusOr<Profile> {
      if (!request.dumps) return running_->Record(request.options);
      absl::Status status = running_->DumpLast();
      if (!status.ok()) return status;
      return Profile();
    });
  }
  void UpdateRecordings() { recordings_.Update(); }

  // Drains what the rings hold, also of threads that have ended with their program, gives the area
  // back, and exports. The last profile says how the program has ended: how(), which may wait for
  // that. Unavailable, and nothing more is exported, if the program has taken the area back.
  absl::Status End(const std::function<std::string()>& how) {
    is_ending_.store(true, std::memory_order_seq_cst);
    area_.Wake();
    keeper_thread_.Join();
    if (WorkerPlatform::HasArea()) {
      registrations_.Update(*running_);
      SeeToCode();
    }
    running_->Finish();
    absl::Status status = absl::UnavailableError("the program has another worker by now");
    if (WorkerPlatform::GiveBackArea()) {
      NoteEnd(how);
      status = running_->Deliver();
    } else {
      running_->Drop();
    }
    recordings_.End();
    return status;
  }

 private:
  // What was lost with the worker before this one is in the first profile's statistics, as a
  // profile that was never delivered. It is no row of that profile: its time is of the period
  // before, and the rows of a period add up to what the clocks advanced in it.
  void CountLoss() {
    const std::int64_t lost_ns = area_.header().lost_cpu_ns.load(std::memory_order_relaxed);
    if (lost_ns <= 0) return;
    counters_.periods_dropped.fetch_add(1, std::memory_order_relaxed);
    counters_.amount_dropped.fetch_add(lost_ns, std::memory_order_relaxed);
  }

  // The events that were lost with the worker before this one are in the last profile, as [lost] of
  // the threads that are not registered: credit that no record brings.
  void CountLostEvents() {
    if constexpr (Traits::Providers::kBringsEvents) {
      SharedAreaHeader& header = area_.header();
      auto& cells = registry_.arena()->Find(0)->cells;
      constexpr auto kColumns = Traits::Providers::CellColumns();
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::size_t column = kColumns[i];
        const std::int64_t exported =
            header.values_exported[column].load(std::memory_order_relaxed);
        const std::int64_t brought = header.events_brought[column].load(std::memory_order_relaxed);
        if (brought > exported && exported >= 0)
          cells[i].credited.fetch_add(brought - exported, std::memory_order_relaxed);
      }
    }
  }

  // A change that comes after `seen` was read ends the wait at once.
  void KeepRegistrations() {
    while (!is_ending_.load(std::memory_order_seq_cst)) {
      const std::uint32_t seen = area_.header().changes.load(std::memory_order_seq_cst);
      if (WorkerPlatform::IsWantedBack()) return leave_();
      registrations_.Update(*running_);
      SeeToCode();
      area_.AwaitChange(seen, kLongestWaitNs);
    }
  }

  void NoteEnd(const std::function<std::string()>& how) {
    ExportJob* const last = running_->last();
    static_cast<void>(counters_.HasMemoryFor([&] {
      if (last != nullptr) last->profile.stats.program_end = how();
    }));
  }

  // What finds no memory is left to the next call.
  void SeeToCode() {
    static_cast<void>(
        counters_.HasMemoryFor([this] { worker_code_.Update(area_.Ranges(), generated_); }));
  }

  Stats CollectStats() {
    Stats stats;
    stats.outputs = NewAccounts(Traits::Outputs::kFileSuffixes);
    registry_.AddTo(stats);
    counters_.AddTo(stats);
    stats.requested_rate_hz = *options_.sampling.cpu_frequency_hz;
    stats.max_overhead = *options_.sampling.max_overhead;
    stats.signal_number = signal_.number.load(std::memory_order_relaxed);
    if (running_ != nullptr) AddExportsOf(*running_->worker(), stats);
    return stats;
  }

  static constexpr std::int64_t kLongestWaitNs = 1'000'000'000;

  const SharedArea area_;
  const std::function<void()> leave_;
  const ProfilerOptions options_;
  const Parts<Base> parts_;
  SignalInUse signal_;
  ThreadRegistry<Traits> registry_;
  CodeRegistry generated_;
  WorkerCode worker_code_;
  CollectorCounters counters_;
  LoadedCode<Traits> code_{generated_, counters_.code};
  ProfileMaker<Traits> maker_{counters_, [this] { return CollectStats(); }};
  std::unique_ptr<RunningSession<Traits>> running_;
  WorkerRecordings recordings_;
  RegistrationKeeper<Traits> registrations_{area_, registry_, counters_};
  std::atomic<bool> is_ending_{false};
  WorkerPlatform::OwnThread keeper_thread_;
};

}  // namespace internal
}  // namespace strobe
