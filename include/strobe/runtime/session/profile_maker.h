// ProfileMaker: takes periods and recordings out of a session, and fills in the data that each
// profile has besides its samples.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strobe/aggregate/recording.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"
#include "strobe/core/profile.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/runtime/session/export_queue.h"
#include "strobe/runtime/session/kept_periods.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/runtime/session/session.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// later - earlier, for counters. A value that is a state, not a counter, is that of `later`.
Stats StatsBetween(const Stats& earlier, const Stats& later);

// For all sessions of a profiler. Used by the collector, or, before and after it, by the thread
// that begins or ends the session.
template <class Traits>
class ProfileMaker {
 public:
  // collect_stats() returns the statistics since construction.
  ProfileMaker(CollectorCounters& counters, std::function<Stats()> collect_stats)
      : counters_(counters), collect_stats_(std::move(collect_stats)) {}

  // Begins the first period of a session, whose profiles have machine tags if the platform has any.
  void Begin(bool wants_machine_tags) {
    if constexpr (requires { Platform::MachineTags(); })
      machine_ = wants_machine_tags ? Platform::MachineTags() : LabelSet();
    at_period_begin_ = collect_stats_();
  }

  // Ends the period. If memory runs out, returns nullptr, and the period continues.
  std::unique_ptr<ExportJob> TakePeriod(Session<Traits>& session) {
    std::unique_ptr<ExportJob> job;
    const bool has_memory = counters_.HasMemoryFor([&] { job = MakeJob(session); });
    return has_memory ? std::move(job) : nullptr;
  }

  // The statistics since construction.
  [[nodiscard]] Stats CollectStats() const { return collect_stats_(); }

  // Sets the profile and the samples of a window of what was kept. Those who call it have settled
  // the accounts. If memory runs out, throws std::bad_alloc.
  void FillWindow(Session<Traits>& session, KeptPeriods::Window&& window,
                  const RecordingColumns& columns, std::int64_t period_ns, Profile& profile,
                  AggregatedPeriod& samples) {
    profile =
        MakeHead(session, columns, period_ns, StatsBetween(window.at_begin, collect_stats_()));
    profile.stats.unregistered = {};
    profile.window = std::move(window.text);
    SetPeriod(profile, window.period, recordings_++);
    window.period.samples.pooled_below = PooledBelow(session, columns);
    samples = std::move(window.period.samples);
  }

  // See Collector::Callbacks.
  void BeginRecording(Session<Traits>& session, RecordingCall& call, bool is_whole) {
    const bool has_memory = is_whole && counters_.HasMemoryFor([&] {
      call.at_begin = collect_stats_();
      call.place = session.BeginRecording(call.columns, call.period_ns);
    });
    if (!has_memory || !call.place) call.status = OutOfMemory();
  }
  void EndRecording(Session<Traits>& session, RecordingCall& call, bool is_whole) {
    bool is_taken = false;
    const bool has_memory = is_whole && counters_.HasMemoryFor([&] {
      call.profile = MakeHead(session, call.columns, call.period_ns,
                              StatsBetween(call.at_begin, collect_stats_()));
      call.profile.stats.unregistered = {};
      std::vector<std::int64_t> pooled_below = PooledBelow(session, call.columns);
      std::optional<RecordedPeriod> period = session.TakeRecording(*call.place);
      if (!period) return;
      SetPeriod(call.profile, *period, recordings_++);
      call.samples = std::move(period->samples);
      call.samples.pooled_below = std::move(pooled_below);
      is_taken = true;
    });
    if (!has_memory || !is_taken) call.status = OutOfMemory();
    session.EndRecording(*call.place);
  }

 private:
  using Platform = typename Traits::Platform;

  using ValueSums = std::array<std::int64_t, Traits::Providers::kValueCount>;

  // By value type; 0 for those that are no columns.
  static ValueSums SumsOf(const RowTable& rows, const RecordingColumns& columns) {
    ValueSums sums{};
    for (std::size_t i = 0; i < std::min(columns.size(), rows.value_count()); ++i)
      sums[columns[i].index] = rows.Sum(i);
    return sums;
  }

  // See AggregatedPeriod. 0 for the columns of providers without a period.
  static std::vector<std::int64_t> PooledBelow(const Session<Traits>& session,
                                               const RecordingColumns& columns) {
    std::vector<std::int64_t> below(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      below[i] = kEnoughSamples * session.period_ns(columns[i].provider);
    return below;
  }

  // Takes the period last, when nothing else can fail.
  std::unique_ptr<ExportJob> MakeJob(Session<Traits>& session) {
    auto job = std::make_unique<ExportJob>();
    Stats now = collect_stats_();
    job->profile =
        MakeHead(session, session.columns(), session.period_ns(session.columns()[0].provider),
                 StatsBetween(at_period_begin_, now));
    std::vector<std::int64_t> pooled_below = PooledBelow(session, session.columns());
    RecordedPeriod period = session.TakePeriod();
    SetPeriod(job->profile, period, periods_++);
    job->profile.stats.unregistered = counters_.unregistered();
    if constexpr (requires { Platform::EndPeriod(periods_, ValueSums()); })
      Platform::EndPeriod(job->profile.sequence, SumsOf(period.samples.rows, session.columns()));
    job->samples = std::move(period.samples);
    job->samples.pooled_below = std::move(pooled_below);
    at_period_begin_ = std::move(now);
    return job;
  }

  // Returns a profile with all that is known before the period is taken. There must be a column;
  // `period_ns` is that of its provider.
  Profile MakeHead(const Session<Traits>& session, const RecordingColumns& columns,
                   std::int64_t period_ns, Stats stats) const {
    using Providers = typename Traits::Providers;
    constexpr auto kTypes = Providers::AllValueTypes();
    const std::size_t provider = columns[0].provider;
    Profile profile;
    profile.value_types = ValueTypesOf(columns, kTypes);
    profile.default_value_type = DefaultColumn(columns);
    // The provider's last value type: a count comes first.
    profile.period_type = kTypes[Providers::ShownColumn(provider)];
    profile.period = period_ns;
    profile.program = Platform::ProgramName();
    profile.process_id = Platform::ProcessId();
    profile.machine = machine_;
    const std::int64_t rated_ns =
        provider == session.columns()[0].provider ? period_ns : session.period_ns();
    stats.requested_rate_hz = rated_ns > 0 ? 1e9 / static_cast<double>(rated_ns) : 0;
    profile.stats = std::move(stats);
    return profile;
  }

  // Takes no memory.
  static void SetPeriod(Profile& profile, const RecordedPeriod& period, std::uint64_t sequence) {
    profile.time_ns = period.time_ns;
    profile.duration_ns = period.duration_ns;
    period.overflows.SetIn(profile.stats);
    profile.sequence = sequence;
  }

  CollectorCounters& counters_;
  const std::function<Stats()> collect_stats_;
  std::uint64_t periods_ = 0;     // taken so far
  std::uint64_t recordings_ = 0;  // taken so far
  LabelSet machine_;              // of the session
  Stats at_period_begin_;
};

}  // namespace internal
}  // namespace strobe
