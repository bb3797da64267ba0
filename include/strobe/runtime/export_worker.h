// ExportWorker: the thread that makes a Profile of a period's samples, names its functions and
// sends it to each output.
#pragma once

#include <array>
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
#include "strobe/export/parts.h"
#include "strobe/runtime/export_queue.h"
#include "strobe/runtime/monitor.h"
#include "strobe/runtime/output_accounts.h"
#include "strobe/runtime/output_parts.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Thread-safe. Holds at most two periods, unless an output fails while another delivers: the period
// that is being sent or has failed, and the session's last. A try that runs out of memory has
// failed, and is repeated like any other. The thread uses only the shared State, so that an
// exporter that hangs for minutes can be left behind.
template <class Traits>
class ExportWorker {
 public:
  using Platform = typename Traits::Platform;
  using Outputs = typename Traits::Outputs;
  using Deadline = Monitor::Deadline;

  explicit ExportWorker(const ProfilerOptions& options, const Parts<Traits>& parts = {})
      : state_(std::make_shared<State>(options, parts)) {}

  // False if the system refuses the thread, or memory runs out.
  bool Begin() {
    return HasMemoryFor([this] {
             thread_ =
                 Platform::RunOnOwnThread("strobe-export", [state = state_] { state->Run(); });
           }) &&
           thread_.IsRunning();
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
    state_->is_due = true;
    state_->monitor.NotifyAll();
  }

  // Tries again to send the periods that have failed.
  void Retry() {
    const std::lock_guard lock(state_->monitor);
    state_->is_due = true;
    state_->monitor.NotifyAll();
  }

  // Waits until each period has been sent, or a try has failed. Returns the status of these tries,
  // or DeadlineExceeded.
  absl::Status Wait(Deadline deadline) {
    std::unique_lock lock(state_->monitor);
    const bool is_done =
        state_->monitor.WaitFor([&] { return !state_->is_due && !state_->is_busy; }, deadline);
    if (!is_done) {
      return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                        "the exporter has not answered in time");
    }
    return state_->status;
  }

  // Ends the thread after it has tried each submitted period. Leaves the thread behind if it does
  // not end by the deadline.
  absl::Status End(Deadline deadline) {
    absl::Status status = Wait(deadline);
    {
      const std::lock_guard lock(state_->monitor);
      state_->is_ending = true;
      state_->monitor.NotifyAll();
    }
    if (absl::IsDeadlineExceeded(status)) {
      thread_.Detach();
    } else {
      thread_.Join();
    }
    return status;
  }

  void AddTo(Stats& stats) const {
    const std::lock_guard lock(state_->monitor);
    AddOutputs(stats, state_->queue.accounts());
    stats.out_of_memory += state_->out_of_memory;
    if (!state_->partly_named.empty()) stats.partly_named_module = state_->partly_named;
  }

  // True if the thread has finished its work, after End.
  [[nodiscard]] bool HasEnded() const {
    const std::lock_guard lock(state_->monitor);
    return state_->has_ended;
  }

 private:
  // The result of an output's tries in one round; `status` is empty if there was no try.
  struct Tries {
    int failures = 0;
    std::optional<absl::Status> status;
  };
  using Round = std::array<Tries, Outputs::kCount>;
  // After this many failures in a round, an output makes no more tries in it: a failure may take
  // long.
  static constexpr int kMaxFailuresOfARound = 2;
  struct State {
    State(const ProfilerOptions& options, const Parts<Traits>& parts)
        : queue(Outputs::kFileSuffixes),
          symbolizer(parts.symbolizer.Make(options.symbols)),
          outputs(MakeOutputs(parts.AllOutputs(), options.exporter)) {}

    void Run() {
      if constexpr (requires { Platform::WorkInBackground(); }) Platform::WorkInBackground();
      std::unique_lock lock(monitor);
      while (true) {
        monitor.WaitFor([&] { return is_due || is_ending; });
        // A period submitted before the end is tried, even if no caller waits for it.
        if (!is_due) break;
        is_due = false;
        is_busy = true;
        Round round;
        // A failed period stays, unless no try can succeed: such a period would block all later
        // ones.
        for (std::size_t i = 0; i < queue.size();) {
          ExportJob& job = queue.At(i);
          lock.unlock();
          Send(job, round);
          lock.lock();
          if (!queue.RemoveIfSettled(i)) ++i;
        }
        queue.DropBeyondLimit();
        EndRound(round);
        is_busy = false;
        monitor.NotifyAll();
      }
      queue.DropAll();
      has_ended = true;
    }

    // Makes one try for each output that has not delivered the job yet.
    void Send(ExportJob& job, Round& round) {
      std::optional<Symbols> symbols;
      bool has_memory = HasMemoryFor([&] { symbols = Prepare(job); });
      std::size_t next = 0;
      const auto send = [&](auto& output) {
        const std::size_t index = next++;
        if (!job.waiting[index] || round[index].failures >= kMaxFailuresOfARound) return;
        absl::StatusOr<std::string> sent = OutOfMemory();
        if (symbols) has_memory = HasMemoryFor([&] { sent = output.Send(job.profile, *symbols); });
        Settle(job, index, std::move(sent), has_memory, round[index]);
      };
      std::apply([&](auto&... output) { (send(output), ...); }, outputs);
    }

    // Fills the profile and names its functions.
    Symbols Prepare(ExportJob& job) {
      FillProfile(job);
      absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(job.profile);
      // A profile without names is worth more than none.
      if (!symbols.ok()) return {};
      if (!symbols->partly_named.empty()) {
        const std::lock_guard lock(monitor);
        partly_named = symbols->partly_named;
      }
      return *std::move(symbols);
    }

    // Notes the result of a try. Allocates no memory.
    void Settle(ExportJob& job, std::size_t index, absl::StatusOr<std::string> sent,
                bool has_memory, Tries& tries) {
      const std::lock_guard lock(monitor);
      out_of_memory += has_memory ? 0 : 1;
      if (!tries.status) tries.status.emplace();
      tries.status->Update(sent.status());
      queue.Settle(job, index, std::move(sent));
      if (job.waiting[index]) ++tries.failures;
    }

    void EndRound(const Round& round) {
      status = absl::OkStatus();
      for (std::size_t i = 0; i < Outputs::kCount; ++i) {
        if (!round[i].status) continue;
        OutputStats& account = queue.accounts()[i];
        const bool has_memory = HasMemoryFor([&] {
          account.last_export_error = std::string(round[i].status->message());
          status.Update(OfOutput(*round[i].status, account.name));
        });
        if (has_memory) continue;
        ++out_of_memory;
        account.last_export_error = "out of memory";  // short enough to need no memory
        status.Update(*round[i].status);
      }
    }

    Monitor monitor;
    ExportQueue queue;
    bool is_due = false;
    bool is_busy = false;
    bool is_ending = false;
    bool has_ended = false;
    absl::Status status;  // of the last round
    std::string partly_named;
    std::uint64_t out_of_memory = 0;

    // Used by the thread only.
    typename Traits::Symbolizer symbolizer;
    decltype(MakeOutputs(std::declval<const Parts<Traits>&>().AllOutputs(),
                         std::declval<const ExporterOptions&>())) outputs;
  };

  std::shared_ptr<State> state_;
  typename Platform::OwnThread thread_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
