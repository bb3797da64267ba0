// ExportWorker: the thread that makes a Profile of a period's samples, names its functions, encodes
// it and sends it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"
#include "strobe/export/exporter.h"
#include "strobe/runtime/monitor.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// One period on its way out. `profile` has everything but what comes from the samples; of these,
// `columns` are wanted.
struct ExportJob {
  AggregatedPeriod samples;
  Profile profile;
  std::vector<std::size_t> columns;
  bool is_filled = false;  // whether `samples` have gone into `profile`
};

// Fills job.profile from job.samples, once, and keeps only the columns that are wanted.
void FillProfile(ExportJob& job);
// What all of its samples add up to, in the value type that is shown by default.
std::int64_t AmountOf(const Profile& profile);

// Thread-safe. It holds at most two periods: the one that is being sent or has failed, and the
// session's last. All that the thread touches lives in a shared state, so that an exporter which
// hangs for minutes can be left behind.
template <class Traits>
class ExportWorker {
 public:
  using Platform = typename Traits::Platform;
  using Deadline = Monitor::Deadline;

  explicit ExportWorker(const ExporterOptions& options)
      : state_(std::make_shared<State>(options)) {}

  // False where the system refuses the thread.
  bool Begin() {
    thread_ = Platform::RunOnOwnThread("strobe-export", [state = state_] { state->Run(); });
    return thread_.IsRunning();
  }

  // Whether nothing is on its way.
  [[nodiscard]] bool IsIdle() const {
    const std::lock_guard lock(state_->monitor);
    return state_->jobs.empty();
  }

  // Hands a period over.
  void Submit(ExportJob job) {
    const std::lock_guard lock(state_->monitor);
    state_->jobs.push_back(std::make_unique<ExportJob>(std::move(job)));
    state_->is_due = true;
    state_->monitor.NotifyAll();
  }

  // Tries what has failed once more.
  void Retry() {
    const std::lock_guard lock(state_->monitor);
    state_->is_due = true;
    state_->monitor.NotifyAll();
  }

  // Waits until everything has been sent, or has been tried in vain; that status, or
  // DeadlineExceeded.
  absl::Status Wait(Deadline deadline) {
    std::unique_lock lock(state_->monitor);
    const bool is_done =
        state_->monitor.WaitFor([&] { return !state_->is_due && !state_->is_busy; }, deadline);
    if (!is_done) return absl::DeadlineExceededError("the exporter has not answered in time");
    return state_->status;
  }

  // Ends the thread, after it has tried what it has not tried yet; leaves it behind where it does
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
    stats.exports += state_->exports;
    stats.exports_failed += state_->failures;
    stats.exports_dropped += state_->dropped;
    stats.amount_dropped += state_->amount_dropped;
    stats.last_export_error = state_->status.ok() ? "" : std::string(state_->status.message());
    if (!state_->path.empty()) stats.last_export_path = state_->path;
    if (!state_->partly_named.empty()) stats.partly_named_module = state_->partly_named;
  }

  // Whether the thread has done all that it had to do, after End.
  [[nodiscard]] bool HasEnded() const {
    const std::lock_guard lock(state_->monitor);
    return state_->has_ended;
  }

 private:
  struct State {
    explicit State(const ExporterOptions& options) : exporter(options) {}

    void Run() {
      if constexpr (requires { Platform::WorkInBackground(); }) Platform::WorkInBackground();
      std::unique_lock lock(monitor);
      while (true) {
        monitor.WaitFor([&] { return is_due || is_ending; });
        if (!is_due)
          break;  // what was submitted before the end is tried, though nobody may wait for it
        is_due = false;
        is_busy = true;
        absl::Status round = absl::OkStatus();
        // One try for each. What fails stays, unless no try can succeed: that one would keep all
        // that follow from being sent.
        for (std::size_t i = 0; i < jobs.size();) {
          ExportJob& job = *jobs[i];
          lock.unlock();
          absl::StatusOr<std::string> sent = Send(job);
          lock.lock();
          if (sent.ok()) {
            path = *std::move(sent);
            ++exports;
          } else {
            round.Update(sent.status());
            ++failures;
            if (!RefusesProfile(sent.status())) {
              ++i;
              continue;
            }
            CountDropped(job);
          }
          jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i));
        }
        status = round;
        is_busy = false;
        monitor.NotifyAll();
      }
      for (const auto& job : jobs) CountDropped(*job);
      jobs.clear();
      has_ended = true;
    }

    void CountDropped(const ExportJob& job) {
      ++dropped;
      amount_dropped += AmountOf(job.profile);
    }

    absl::StatusOr<std::string> Send(ExportJob& job) {
      FillProfile(job);
      absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(job.profile);
      if (symbols.ok() && !symbols->partly_named.empty()) {
        const std::lock_guard lock(monitor);
        partly_named = symbols->partly_named;
      }
      // A profile without names is worth more than none.
      absl::StatusOr<std::string> bytes =
          encoder.Encode(job.profile, symbols.ok() ? *symbols : Symbols());
      if (!bytes.ok()) return bytes.status();
      return exporter.Export({.bytes = *bytes,
                              .file_suffix = Traits::Encoder::kFileSuffix,
                              .content_type = Traits::Encoder::kContentType,
                              .profile = job.profile});
    }

    Monitor monitor;
    std::vector<std::unique_ptr<ExportJob>> jobs;
    bool is_due = false;
    bool is_busy = false;
    bool is_ending = false;
    bool has_ended = false;
    std::uint64_t exports = 0;
    std::uint64_t failures = 0;
    std::uint64_t dropped = 0;
    std::int64_t amount_dropped = 0;
    absl::Status status;  // of the last round
    std::string path;
    std::string partly_named;

    // The thread's own.
    typename Traits::Symbolizer symbolizer;
    typename Traits::Encoder encoder;
    typename Traits::Exporter exporter;
  };

  std::shared_ptr<State> state_;
  typename Platform::OwnThread thread_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
