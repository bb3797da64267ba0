// RunningSession: a session from Start to Stop, with its two threads: the collector and the
// exporter.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/export/parts.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/runtime/session/collector.h"
#include "strobe/runtime/session/delivery_check.h"
#include "strobe/runtime/session/flight_recorder.h"
#include "strobe/runtime/session/output_threads.h"
#include "strobe/runtime/session/profile_maker.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/runtime/session/session.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Whether the session's threads have files of their own.
template <class Traits>
inline constexpr bool kSharesNoFiles = requires {
  &Traits::Platform::WithOwnFiles;
}
&&BringsNoFiles<typename Traits::Symbolizer>&& BringsNoFiles<typename Traits::Providers>&&
    BringsNoFiles<typename Traits::Outputs>;

// How long a session's end waits for the last export.
inline std::chrono::milliseconds StopTimeout(const ExporterOptions& options) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(*options.stop_timeout_s * 1e3));
}

// Begin, Flush and End are called one at a time; Record and DumpLast from any thread, at any time.
template <class Traits>
class RunningSession {
 public:
  using Deadline = Monitor::Deadline;
  using Worker = OutputThreads<Traits>;

  // All arguments except `options` and `parts` must outlive this object.
  RunningSession(const ProfilerOptions& options, const Parts<Traits>& parts,
                 ThreadRegistry<Traits>& registry, LoadedCode<Traits>& code,
                 CollectorCounters& counters, SignalInUse& signal, ProfileMaker<Traits>& maker)
      : registry_(registry),
        counters_(counters),
        maker_(maker),
        has_machine_tags_(*options.exporter.machine_tags),
        wants_windows_(*options.keep.last_s > 0 && options.keep.has_moments()),
        stop_timeout_(StopTimeout(options.exporter)),
        session_(options, registry, code, counters, signal.number.load(std::memory_order_relaxed),
                 parts.providers),
        worker_(std::make_shared<Worker>(options, parts)),
        flight_(options, session_, counters, maker),
        collector_(options, session_, counters, MakeCallbacks(signal)) {}

  [[nodiscard]] Session<Traits>& session() { return session_; }
  // Outlives the session if an exporter hangs.
  [[nodiscard]] const std::shared_ptr<Worker>& worker() const { return worker_; }

  // Begins to sample a thread that has registered. Its account begins at `since`, or now.
  void Attach(RegisteredThread<Traits>& thread,
              const typename ThreadAccounts<Traits>::Clocks& since = {}) {
    session_.Attach(thread, since);
    collector_.ExpectMore();
  }

  // Ends the sampling of a thread whose registration ends.
  void Detach(RegisteredThread<Traits>& thread) { session_.Detach(thread); }

  // Begins both threads, or none, with the calling thread's files. session().Begin() attaches the
  // program's threads.
  absl::Status Begin() {
    if (!session_.has_provider()) {
      return absl::InvalidArgumentError(
          "sampling.cpu_frequency_hz and sampling.wall_frequency_hz: no provider is enabled");
    }
    if (absl::Status status = worker_->Check(); !status.ok()) return status;
    maker_.Begin(has_machine_tags_);
    if (absl::Status status = worker_->Begin(); !status.ok()) return status;
    // From here on nothing may throw, because the exporter's thread runs.
    registry_.BeginCollecting();
    flight_.Begin(typename Traits::Clock().MonotonicNs());
    absl::Status status = collector_.Begin();
    if (status.ok()) {
      WarnOfWindows();
      return status;
    }
    session_.FinishAll();
    static_cast<void>(worker_->End(ExportDeadline()));
    return status;
  }

  // Exports what has been sampled, and ends all recordings. Throws nothing: what finds no memory is
  // dropped, and counted.
  absl::Status End() {
    Finish();
    return Deliver();
  }

  // The first half of End: afterwards no thread's channel is used. Deliver or Drop follows.
  void Finish() {
    session_.End();
    collector_.End();
    const std::uint64_t failures = counters_.out_of_memory.load(std::memory_order_relaxed);
    session_.FinishAll();
    if (flight_.has_moment()) CountDumpFailed();
    const bool is_whole = counters_.out_of_memory.load(std::memory_order_relaxed) == failures;
    last_ = maker_.TakePeriod(session_);
    if (last_ == nullptr) session_.CountPeriodDropped();
    collector_.EndRecordings(is_whole);
  }
  // What Deliver exports last; nullptr if memory has run out.
  [[nodiscard]] ExportJob* last() const { return last_.get(); }
  // Exports the last period, and what waits for an export.
  absl::Status Deliver() {
    absl::Status status = last_ == nullptr ? OutOfMemory() : absl::OkStatus();
    if (last_ != nullptr) worker_->Submit(std::move(last_));
    status.Update(worker_->End(ExportDeadline()));
    return status;
  }
  // Exports nothing more.
  void Drop() {
    last_.reset();
    static_cast<void>(worker_->End(std::chrono::steady_clock::now()));
  }

  absl::Status Flush() {
    const Deadline deadline = ExportDeadline();
    const std::uint64_t failures = counters_.out_of_memory.load(std::memory_order_relaxed);
    absl::Status status;
    while (true) {
      // Periods that failed before go first. The collector may also end a period by itself just
      // now.
      if (!worker_->IsIdle()) {
        worker_->Retry();
        status = worker_->Wait(deadline);
        if (!status.ok() && !worker_->HasRoom()) return status;
      }
      if (collector_.EndPeriod(deadline)) {
        status.Update(worker_->Wait(deadline));
        return status;
      }
      if (counters_.out_of_memory.load(std::memory_order_relaxed) != failures) return OutOfMemory();
      if (std::chrono::steady_clock::now() >= deadline) return NoAnswer();
    }
  }

  // Writes what is kept, and waits for that like Flush: see BasicProfiler::DumpLast.
  absl::Status DumpLast() {
    if (!flight_.is_on()) return NothingKept();
    if (!Worker::kTakesWindows) return NoOutputTakesWindows();
    const auto call = std::make_shared<RecordingCall>();
    call->last_ns = std::chrono::nanoseconds(kMaxRecordingDuration).count();
    call->dump = std::make_shared<WindowOutcome>();
    call->deadline = ExportDeadline();
    if (!collector_.Record(call)) return NoAnswer();
    if (!call->status.ok()) return call->status;
    return worker_->WaitFor(*call->dump, *call->deadline);
  }

  // Waits for as long as the recording lasts; for what was before, like Flush. `options` must be
  // valid.
  absl::StatusOr<Profile> Record(const RecordingOptions& options) {
    const bool is_of_before = options.last.count() != 0;
    if (is_of_before && !flight_.is_on()) return NothingKept();
    absl::StatusOr<RecordingColumns> columns =
        SelectColumns(session_.columns(), Traits::Providers::AllValueTypes(), options.value_types);
    if (!columns.ok()) return columns.status();
    const std::size_t provider = columns->front().provider;
    if (options.frequency_hz > 0 && !Traits::Providers::IsRated(provider)) {
      return absl::InvalidArgumentError(
          absl::StrCat("frequency_hz: the samples of ",
                       std::string(Traits::Providers::AllValueTypes()[columns->front().index].type),
                       " have no rate"));
    }
    const auto call = std::make_shared<RecordingCall>();
    call->period_ns = session_.period_ns(provider);
    if (options.frequency_hz * static_cast<double>(call->period_ns) > 1e9)
      call->period_ns = static_cast<std::int64_t>(1e9 / options.frequency_hz);
    call->columns = *std::move(columns);
    call->duration_ns = std::chrono::nanoseconds(options.duration).count();
    call->last_ns = std::chrono::nanoseconds(options.last).count();
    call->cancelled = options.cancelled;
    if (is_of_before) call->deadline = ExportDeadline();
    if (!collector_.Record(call)) return NoAnswer();
    if (!call->status.ok()) return call->status;
    FillProfile(std::move(call->samples), call->profile);
    return std::move(call->profile);
  }

 private:
  static absl::Status NothingKept() {
    return absl::FailedPreconditionError("nothing is kept: set keep.last_s");
  }
  static absl::Status NoOutputTakesWindows() {
    return absl::FailedPreconditionError("no output of this profiler takes windows");
  }
  static absl::Status NoAnswer() {
    return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                      "the collector has not answered in time");
  }
  void WarnOfWindows() const {
    if (!wants_windows_ || Worker::kTakesWindows) return;
    static_cast<void>(HasMemoryFor([] {
      Traits::Platform::WriteLine(absl::StrCat(
          "strobe: ", KeepOptions::kMoments, " write nothing: ", NoOutputTakesWindows().message()));
    }));
  }

  // On the collector's thread.
  void TakeLast(RecordingCall& call) {
    const std::int64_t now_ns = typename Traits::Clock().MonotonicNs();
    if (call.dump == nullptr) {
      flight_.Take(call, now_ns);
    } else if (!Dump("", call.dump, now_ns)) {
      CountDumpFailed();
      call.status = MakeStatus(absl::StatusCode::kResourceExhausted,
                               "no memory, or too many windows wait for the output");
    }
  }
  // Dumps for a trigger, if one has fired. A dump that fails is tried again after the next drain.
  void AfterDrain(std::int64_t now_ns) {
    const std::optional<std::string> reason = flight_.AfterDrain(now_ns);
    if (!reason) return;
    if (!Worker::kTakesWindows) {
      CountDumpFailed();
    } else if (!Dump(*reason, nullptr, now_ns)) {
      return;
    }
    flight_.EndMoment(now_ns);
  }
  // False if it could not be submitted.
  bool Dump(const std::string& reason, std::shared_ptr<WindowOutcome> outcome,
            std::int64_t now_ns) {
    if (!worker_->HasRoomForWindow()) return false;
    std::unique_ptr<ExportJob> job = flight_.TakeJob(reason, now_ns);
    if (job == nullptr) return false;
    job->outcome = std::move(outcome);
    worker_->SubmitWindow(std::move(job));
    return true;
  }
  void CountDumpFailed() { counters_.dumps_failed.fetch_add(1, std::memory_order_relaxed); }

  typename Collector<Traits>::Callbacks MakeCallbacks(SignalInUse& signal) {
    using Check = DeliveryCheck<Traits, Session<Traits>>;
    std::function<void(std::int64_t)> after_drain;
    if (flight_.is_on()) after_drain = [this](std::int64_t now_ns) { AfterDrain(now_ns); };
    return {
        .end_period = [this] { return EndPeriod(); },
        .check_handler =
            [check = Check(session_, registry_, counters_, signal)]() mutable { check.Run(); },
        .begin_recording =
            [this](RecordingCall& call, bool is_whole) {
              if (call.last_ns != 0) return TakeLast(call);
              maker_.BeginRecording(session_, call, is_whole);
            },
        .end_recording = [this](RecordingCall& call,
                                bool is_whole) { maker_.EndRecording(session_, call, is_whole); },
        .after_drain = std::move(after_drain)};
  }

  // On the collector's thread.
  bool EndPeriod() {
    if (!worker_->HasRoom()) {
      worker_->Retry();
    } else if (SubmitPeriod().ok()) {
      return true;
    }
    counters_.periods_extended.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // If memory runs out, the period continues.
  absl::Status SubmitPeriod() {
    std::unique_ptr<ExportJob> job = maker_.TakePeriod(session_);
    if (job == nullptr) return OutOfMemory();
    worker_->Submit(std::move(job));
    return absl::OkStatus();
  }

  [[nodiscard]] Deadline ExportDeadline() const {
    return std::chrono::steady_clock::now() + stop_timeout_;
  }

  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  ProfileMaker<Traits>& maker_;
  const bool has_machine_tags_;
  const bool wants_windows_;  // by an option, not only by a call
  const std::chrono::milliseconds stop_timeout_;
  Session<Traits> session_;
  const std::shared_ptr<Worker> worker_;
  FlightRecorder<Traits> flight_;
  std::unique_ptr<ExportJob> last_;  // the last period, from Finish on
  Collector<Traits> collector_;
};

}  // namespace internal
}  // namespace strobe
