// OutputThreads: one thread for each output. The threads make a Profile of a period's samples, name
// its functions and send it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"
#include "strobe/export/exporter.h"
#include "strobe/export/parts.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/runtime/session/export_queue.h"
#include "strobe/runtime/session/monitor.h"
#include "strobe/runtime/session/output_accounts.h"
#include "strobe/runtime/session/output_parts.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe. Holds at most two periods, unless an output fails while another delivers: the period
// that is being sent or has failed, and the session's last; and kMaxWaitingWindows windows. A
// period's try that runs out of memory has failed, and is repeated like any other. The threads use
// only the shared State, so that an exporter that hangs for minutes can be left behind.
template <class Traits>
class OutputThreads {
 public:
  using Platform = typename Traits::Platform;
  using Outputs = typename Traits::Outputs;
  using Deadline = Monitor::Deadline;

  explicit OutputThreads(const ProfilerOptions& options, const Parts<Traits>& parts = {})
      : state_(std::make_shared<State>(options, parts)) {}

  // FailedPrecondition if an exporter cannot deliver: see CheckingExporter. Call it before Begin.
  [[nodiscard]] absl::Status Check() {
    absl::Status status;
    std::size_t index = 0;
    const auto check = [&](auto& output) {
      const std::string& name = state_->queue.accounts()[index++].name;
      const absl::Status checked = status.ok() ? OfOutput(output.Check(), name) : absl::OkStatus();
      if (!checked.ok()) status = absl::FailedPreconditionError(checked.message());
    };
    std::apply([&](auto&... outputs) { (check(outputs), ...); }, state_->outputs);
    return status;
  }

  // ResourceExhausted if the system refuses a thread, or memory runs out. Then no thread is left.
  absl::Status Begin() {
    static_cast<void>(HasMemoryFor([this] { BeginThreads(kIndices); }));
    absl::Status status;
    for (const auto& thread : threads_) status.Update(StatusOfThread("the exporter", thread));
    if (!status.ok()) EndThreads();
    return status;
  }

  // True if no period waits for an output.
  [[nodiscard]] bool IsIdle() const {
    const std::lock_guard lock(state_->monitor);
    return state_->queue.size() == 0;
  }

  // True if an output is free, and there is room for another period.
  [[nodiscard]] bool HasRoom() const {
    const std::lock_guard lock(state_->monitor);
    return state_->queue.HasRoom();
  }

  // Adds a period. Requires HasRoom, unless the period is the session's last. Allocates no memory.
  void Submit(std::unique_ptr<ExportJob> job) {
    const std::lock_guard lock(state_->monitor);
    state_->queue.Push(std::move(job));
    state_->WakeAll();
  }

  // True if an output takes windows: see Profile::window.
  static constexpr bool kTakesWindows = Outputs::kTakesWindows != 0;
  // True if there is room for another window.
  [[nodiscard]] bool HasRoomForWindow() const {
    const std::lock_guard lock(state_->monitor);
    return state_->queue.HasRoomForWindow();
  }
  // Adds a window, which only the outputs that take windows try to write, once each and before the
  // periods that wait. Requires HasRoomForWindow. Allocates no memory.
  void SubmitWindow(std::unique_ptr<ExportJob> job) {
    const std::lock_guard lock(state_->monitor);
    state_->queue.Push(std::move(job), Outputs::kTakesWindows);
    state_->Wake(Outputs::kTakesWindows);
  }
  // Waits for the outcome of a window that was submitted: its status, or DeadlineExceeded.
  absl::Status WaitFor(const WindowOutcome& outcome, Deadline deadline) {
    const std::lock_guard lock(state_->monitor);
    if (!state_->monitor.WaitFor([&] { return outcome.is_settled; }, deadline)) return NoAnswer();
    return outcome.status;
  }

  // Tries again to send the periods that have failed.
  void Retry() {
    const std::lock_guard lock(state_->monitor);
    state_->WakeAll();
  }

  // Waits until each job has been sent, or a try has failed. Returns the status of the periods'
  // tries, or DeadlineExceeded.
  absl::Status Wait(Deadline deadline) {
    std::unique_lock lock(state_->monitor);
    if (!state_->monitor.WaitFor([&] { return state_->IsAtRest(); }, deadline)) return NoAnswer();
    return state_->LastStatus();
  }

  // Ends the threads after they have tried each submitted period. Asks the exporters to return
  // before the deadline, and leaves the thread behind of one that does not.
  absl::Status End(Deadline deadline) {
    const auto now = std::chrono::steady_clock::now();
    const auto margin = std::min((deadline - now) / 8, Deadline::duration(kEndMargin));
    state_->end_ns.store(std::chrono::nanoseconds((deadline - margin).time_since_epoch()).count(),
                         std::memory_order_relaxed);
    absl::Status status = Wait(deadline);
    EndThreads();
    return status;
  }

  void AddTo(Stats& stats) const {
    const std::lock_guard lock(state_->monitor);
    OutputAccounts accounts = state_->queue.accounts();
    for (std::size_t i = 0; i < Outputs::kCount; ++i)
      AddExporter(accounts[i], state_->lanes[i].account);
    AddOutputs(stats, accounts);
    stats.dumps += state_->queue.windows_written();
    stats.dumps_failed += state_->queue.windows_failed();
    stats.out_of_memory += state_->out_of_memory;
    if (!state_->partly_named.empty()) stats.partly_named_module = state_->partly_named;
  }

  // True if the threads have finished their work, after End.
  [[nodiscard]] bool HasEnded() const {
    const std::lock_guard lock(state_->monitor);
    for (const Lane& lane : state_->lanes) {
      if (!lane.has_ended) return false;
    }
    return true;
  }

 private:
  static constexpr std::make_index_sequence<Outputs::kCount> kIndices{};
  // After this many failures in a round, an output makes no more tries in it: a failure may take
  // long.
  static constexpr int kMaxFailuresOfARound = 2;
  static absl::Status NoAnswer() {
    return MakeStatus(absl::StatusCode::kDeadlineExceeded, "the exporter has not answered in time");
  }

  // An exporter has this long, or an eighth of the stop timeout, to return after its deadline.
  static constexpr std::chrono::milliseconds kEndMargin{500};

  // The thread of one output.
  struct Lane {
    bool is_due = false;
    bool is_busy = false;
    bool has_ended = false;
    // Of the periods of the last round; empty if it tried none.
    std::optional<absl::Status> status;
    ExporterAccount account;
  };

  struct State {
    State(const ProfilerOptions& options, const Parts<Traits>& parts)
        : queue(Outputs::kFileSuffixes),
          symbolizer(parts.symbolizer.Make(options.symbols)),
          outputs(MakeOutputs(parts.AllOutputs(), options.exporter)) {}

    void WakeAll() { Wake(~std::uint64_t{0}); }
    // A bit for each lane, the first one's the lowest.
    void Wake(std::uint64_t bits) {
      for (std::size_t i = 0; i < Outputs::kCount; ++i) lanes[i].is_due |= (bits >> i & 1) != 0;
      monitor.NotifyAll();
    }
    [[nodiscard]] bool IsAtRest() const {
      for (const Lane& lane : lanes) {
        if (lane.is_due || lane.is_busy) return false;
      }
      return true;
    }
    // The first error of the last rounds, in the order of the outputs.
    [[nodiscard]] absl::Status LastStatus() const {
      absl::Status status;
      for (std::size_t i = 0; i < Outputs::kCount; ++i) {
        if (!lanes[i].status || !status.ok()) continue;
        const bool has_memory =
            HasMemoryFor([&] { status = OfOutput(*lanes[i].status, queue.accounts()[i].name); });
        if (!has_memory) status = *lanes[i].status;
      }
      return status;
    }

    // The thread of output `kIndex`.
    template <std::size_t kIndex>
    void Run() {
      if constexpr (requires { Platform::WorkInBackground(); }) Platform::WorkInBackground();
      Lane& lane = lanes[kIndex];
      std::unique_lock lock(monitor);
      while (true) {
        monitor.WaitFor([&] { return lane.is_due || is_ending; });
        // A period submitted before the end is tried, even if no caller waits for it.
        if (!lane.is_due) break;
        lane.is_due = false;
        lane.is_busy = true;
        RunRound<kIndex>(lock);
        lane.is_busy = false;
        monitor.NotifyAll();
      }
      queue.DropAll(kIndex);
      LeaveSpool(lane.account);
      lane.has_ended = true;
      monitor.NotifyAll();  // a caller may wait for a window that was dropped
    }

    // Makes one try for each job that waits for the output.
    template <std::size_t kIndex>
    void RunRound(std::unique_lock<Monitor>& lock) {
      auto& output = std::get<kIndex>(outputs);
      std::optional<absl::Status> status;
      int failures = 0;
      std::uint64_t last = 0;
      while (failures < kMaxFailuresOfARound) {
        ExportJob* const job = queue.Take(kIndex, last);
        if (job == nullptr) break;
        const bool is_period = !job->is_window();
        if (is_period) last = job->number;
        const std::uint64_t sequence = job->profile.sequence;
        const bool has_newer = queue.HasNewer(kIndex, job->number);
        lock.unlock();
        absl::StatusOr<std::string> sent = OutOfMemory();
        const bool has_memory = HasMemoryFor([&] {
          Prepare(*job);
          sent = output.Send(job->profile, *job->symbols, ExportDeadline(end_ns), has_newer);
        });
        lock.lock();
        out_of_memory += has_memory ? 0 : 1;
        if (is_period) {
          if (!status) status.emplace();
          status->Update(sent.status());
        } else if (!sent.ok()) {
          NoteError(kIndex, sent.status());
        }
        if (queue.Settle(*job, kIndex, std::move(sent))) {
          ++failures;
        } else if constexpr (requires { Platform::NoteExported(sequence); }) {
          if (is_period) Platform::NoteExported(sequence);
        }
      }
      EndRound(kIndex, std::move(status));
      if constexpr (AccountingExporter<decltype(output.exporter)>) {
        // If memory runs out, the account is that of the round before.
        if (!HasMemoryFor([&] { lanes[kIndex].account = output.exporter.account(); }))
          ++out_of_memory;
      } else {
        lanes[kIndex].account.delivered = queue.accounts()[kIndex].exports;
      }
    }

    // Fills the profile and names its functions, once for all outputs.
    void Prepare(ExportJob& job) {
      const std::lock_guard preparing(prepare_mutex);
      if (job.symbols) return;
      FillProfile(job);
      absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(job.profile);
      // A profile without names is worth more than none.
      job.symbols = symbols.ok() ? *std::move(symbols) : Symbols();
      if (job.symbols->partly_named.empty()) return;
      const std::lock_guard lock(monitor);
      partly_named = job.symbols->partly_named;
    }

    void EndRound(std::size_t index, std::optional<absl::Status> status) {
      if (status) NoteError(index, *status);
      lanes[index].status = std::move(status);
    }
    void NoteError(std::size_t index, const absl::Status& status) {
      OutputStats& account = queue.accounts()[index];
      if (HasMemoryFor([&] { account.last_export_error = std::string(status.message()); })) return;
      ++out_of_memory;
      account.last_export_error = "out of memory";  // short enough to need no memory
    }

    Monitor monitor;
    ExportQueue queue;
    std::array<Lane, Outputs::kCount> lanes;
    bool is_ending = false;
    std::string partly_named;
    std::uint64_t out_of_memory = 0;

    std::atomic<std::int64_t> end_ns{INT64_MAX};  // see ExportDeadline
    std::mutex prepare_mutex;                     // never locked while the monitor is
    typename Traits::Symbolizer symbolizer;       // used under prepare_mutex
    // Each is used by its own thread only.
    decltype(MakeOutputs(std::declval<const Parts<Traits>&>().AllOutputs(),
                         std::declval<const ExporterOptions&>())) outputs;
  };

  template <std::size_t... kIndex>
  void BeginThreads(std::index_sequence<kIndex...> /*indices*/) {
    ((threads_[kIndex] = Platform::RunOnOwnThread(
          "strobe-export", [state = state_] { state->template Run<kIndex>(); })),
     ...);
  }

  void EndThreads() {
    std::array<bool, Outputs::kCount> hangs{};
    {
      const std::lock_guard lock(state_->monitor);
      state_->is_ending = true;
      for (std::size_t i = 0; i < Outputs::kCount; ++i)
        hangs[i] = state_->lanes[i].is_due || state_->lanes[i].is_busy;
      state_->monitor.NotifyAll();
    }
    for (std::size_t i = 0; i < Outputs::kCount; ++i) {
      if (!threads_[i].IsRunning()) continue;
      hangs[i] ? threads_[i].Detach() : threads_[i].Join();
    }
  }

  std::shared_ptr<State> state_;
  std::array<typename Platform::OwnThread, Outputs::kCount> threads_;
};

}  // namespace internal
}  // namespace strobe
