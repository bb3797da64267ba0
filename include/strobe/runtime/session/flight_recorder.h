// FlightRecorder: keeps what has been recorded in the last time, and takes a window of it when a
// call asks for it, or a trigger fires.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "strobe/aggregate/reached_limits.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/recording_options.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/runtime/session/dump_triggers.h"
#include "strobe/runtime/session/export_queue.h"
#include "strobe/runtime/session/kept_periods.h"
#include "strobe/runtime/session/profile_maker.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/runtime/session/session.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A recording beside the continuous one, cut into slices of 1 / kKeptSlices of the time to keep.
// Accounts are settled at the cuts, so each window adds up to what the clocks advanced in it. A
// slice ends at a drain that comes anyway. Without keep.last_s it does nothing and has no memory.
// Begin comes before the collector; the collector calls the rest.
template <class Traits>
class FlightRecorder {
 public:
  // `options` are needed for the construction only; the rest must outlive this object.
  FlightRecorder(const ProfilerOptions& options, Session<Traits>& session,
                 CollectorCounters& counters, ProfileMaker<Traits>& maker)
      : session_(session), counters_(counters), maker_(maker) {
    const auto keep_ns = static_cast<std::int64_t>(*options.keep.last_s * 1e9);
    if (keep_ns <= 0) return;
    slice_ns_ = std::max<std::int64_t>(keep_ns / kKeptSlices, 1);
    kept_ = std::make_unique<KeptPeriods>(
        keep_ns, static_cast<std::size_t>(*options.collector.memory_bytes));
    triggers_ = std::make_unique<DumpTriggers>(options.keep);
  }

  [[nodiscard]] bool is_on() const { return kept_ != nullptr; }

  // Begins to keep. If memory runs out, the next slice begins.
  void Begin(std::int64_t now_ns) {
    if (!is_on()) return;
    static_cast<void>(counters_.HasMemoryFor([&] {
      at_begin_ = maker_.CollectStats();
      session_.BeginKept();
    }));
    slice_end_ns_ = now_ns + slice_ns_;
  }

  // Call it after each drain. Ends the slice if it has lasted long enough. Returns why the window
  // should be written now, if a trigger has fired: again and again until EndMoment.
  std::optional<std::string> AfterDrain(std::int64_t now_ns) {
    if (now_ns >= slice_end_ns_) EndSlice(now_ns);
    counters_.aggregator_bytes.fetch_add(kept_->memory_bytes(), std::memory_order_relaxed);
    std::optional<std::string> reason;
    static_cast<void>(counters_.HasMemoryFor([&] {
      reason = triggers_->Check({.now_ns = now_ns,
                                 .process_cpu_ns = counters_.process_cpu_ns.load(),
                                 .memory_bytes = MemoryBytes(),
                                 .slow_spans = ProcessSlowSpans().added(),
                                 .limits = ReachedLimits::count()});
    }));
    counters_.dumps_skipped.store(earlier_skipped_ + triggers_->skipped(),
                                  std::memory_order_relaxed);
    return reason;
  }
  // See DumpTriggers.
  void EndMoment(std::int64_t now_ns) { triggers_->EndMoment(now_ns); }
  [[nodiscard]] bool has_moment() const { return is_on() && triggers_->has_moment(); }

  // Ends the slice, and makes the call's profile of the last call.last_ns. Call it after a drain.
  void Take(RecordingCall& call, std::int64_t now_ns) {
    call.status = OutOfMemory();
    static_cast<void>(counters_.HasMemoryFor([&] {
      std::optional<KeptPeriods::Window> window = Find(call.last_ns, call.columns, now_ns);
      if (!window) return;
      maker_.FillWindow(session_, *std::move(window), call.columns, call.period_ns, call.profile,
                        call.samples);
      call.status = absl::OkStatus();
    }));
  }

  // The same for all that is kept, as a job for the outputs; nullptr if memory runs out.
  std::unique_ptr<ExportJob> TakeJob(const std::string& reason, std::int64_t now_ns) {
    std::unique_ptr<ExportJob> job;
    static_cast<void>(counters_.HasMemoryFor([&] {
      const RecordingColumns& columns = session_.columns();
      std::optional<KeptPeriods::Window> window = Find(slice_ns_ * kKeptSlices, columns, now_ns);
      if (!window) return;
      auto made = std::make_unique<ExportJob>();
      maker_.FillWindow(session_, *std::move(window), columns,
                        session_.period_ns(columns[0].provider), made->profile, made->samples);
      if (!reason.empty()) made->profile.window += "; " + reason;
      job = std::move(made);
    }));
    return job;
  }

 private:
  // -1 if no trigger needs it, or the platform does not know it.
  [[nodiscard]] std::int64_t MemoryBytes() const {
    if constexpr (requires { Traits::Platform::ProcessMemoryBytes(); })
      return triggers_->needs_memory() ? Traits::Platform::ProcessMemoryBytes() : -1;
    return -1;
  }
  // If memory runs out, what is kept until now does not meet what comes: it is forgotten.
  void EndSlice(std::int64_t now_ns) {
    bool is_kept = false;
    static_cast<void>(counters_.HasMemoryFor([&] {
      Stats now = maker_.CollectStats();
      std::optional<RecordedPeriod> period = session_.TakeKept();
      if (!period) return;  // memory has run out in the recording
      kept_->Add(*std::move(period), std::move(at_begin_));
      at_begin_ = std::move(now);
      is_kept = true;
    }));
    slice_end_ns_ = now_ns + slice_ns_;
    if (!is_kept) BeginAnew(now_ns);
  }
  void BeginAnew(std::int64_t now_ns) {
    kept_->Clear();
    Begin(now_ns);
  }

  std::optional<KeptPeriods::Window> Find(std::int64_t last_ns, const RecordingColumns& columns,
                                          std::int64_t now_ns) {
    EndSlice(now_ns);
    std::optional<RecordedPeriod> levels;
    if (!counters_.HasMemoryFor([&] { levels = session_.TakeLevels(); })) {
      BeginAnew(now_ns);
      return std::nullopt;
    }
    return kept_->Find(last_ns, PlacesIn(session_.columns(), columns), levels,
                       session_.SlowSpansNow());
  }

  // Where the columns stand among those of the session.
  static std::vector<std::size_t> PlacesIn(const RecordingColumns& all,
                                           const RecordingColumns& columns) {
    std::vector<std::size_t> places;
    for (const RecordingColumn& column : columns) {
      const auto at = std::ranges::find(all, column.index, &RecordingColumn::index);
      places.push_back(static_cast<std::size_t>(at - all.begin()));
    }
    return places;
  }

  Session<Traits>& session_;
  CollectorCounters& counters_;
  ProfileMaker<Traits>& maker_;
  const std::uint64_t earlier_skipped_ = counters_.dumps_skipped.load(std::memory_order_relaxed);
  std::int64_t slice_ns_ = 0;
  std::unique_ptr<KeptPeriods> kept_;
  std::unique_ptr<DumpTriggers> triggers_;
  std::int64_t slice_end_ns_ = 0;
  Stats at_begin_;  // of the slice
};

}  // namespace internal
}  // namespace strobe
