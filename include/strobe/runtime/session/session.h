// Session: the sampling between one Start and its Stop. It has no thread of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/recording.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/system_clock.h"
#include "strobe/core/options.h"
#include "strobe/core/stats.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/drain/channel_drain.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/level_rows.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/runtime/drain/thread_accounts.h"
#include "strobe/runtime/polls/thread_poller.h"
#include "strobe/runtime/session/unregistered_check.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// How long a thread must have been idle, or a thread free, before its memory is given back. That
// may take up to twice this time and a period.
inline constexpr std::int64_t kLongIdleNs = 10'000'000'000;

// This many ended threads with unsettled accounts count as a full ring.
inline constexpr double kManyEndedThreads = 256;

// Attach and Detach may be called from any thread; everything else by the collector, or,
// after it has ended, by the thread that ends the session.
template <class Traits>
class Session {
 public:
  using Thread = RegisteredThread<Traits>;
  using Providers = typename Traits::Providers;
  static constexpr std::size_t kCount = Providers::kCount;
  using Row = typename ThreadAccounts<Traits>::Row;

  Session(const ProfilerOptions& options, ThreadRegistry<Traits>& registry,
          LoadedCode<Traits>& code, CollectorCounters& counters, int signal,
          const typename Providers::Parts& providers = {})
      : registry_(registry),
        code_(code),
        counters_(counters),
        earlier_overflows_(counters_.overflows()),
        accounts_(options.sampling, registry, counters, signal, providers),
        drain_(options.collector, registry, code, counters, accounts_, Now()),
        poller_(options.sampling, registry, code, counters, accounts_, drain_),
        columns_(EnabledColumns(accounts_.providers())),
        zone_frames_(*options.collector.zone_frames) {
    registry_.arena()->max_frames.store(static_cast<std::uint32_t>(*options.sampling.max_frames),
                                        std::memory_order_relaxed);
    registry_.arena()->keeps_times.store(*options.sampling.timestamps, std::memory_order_relaxed);
  }

  // True if the options enable a provider.
  [[nodiscard]] bool has_provider() const { return accounts_.first_enabled() < kCount; }
  // The sampling period of that provider, or of the first that is enabled; 0 if it has none.
  [[nodiscard]] std::int64_t period_ns(std::size_t provider) const {
    return accounts_.period_ns(provider);
  }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns(accounts_.first_enabled()); }
  // The columns of the providers that are enabled.
  [[nodiscard]] const RecordingColumns& columns() const { return columns_; }

  // Begins to sample a live thread. Does nothing if the thread is attached already. A capture of an
  // earlier session may still write into the thread: then the first drain after its end attaches
  // the thread. The account begins at `since`, or now.
  void Attach(Thread& thread, const typename ThreadAccounts<Traits>::Clocks& since = {}) {
    accounts_.Attach(thread, since);
  }

  // Ends the sampling of a thread; credits each provider's residual.
  void Detach(Thread& thread) { static_cast<void>(accounts_.Detach(thread)); }

  // Settles the thread's account and attaches the thread anew, after a change of the thread or of
  // the signal. The new account begins where the old one ended. Collector's thread only.
  void Reattach(Thread& thread) {
    const auto ended = accounts_.Detach(thread);
    if (!ended) return;
    FinishOrDrop(thread);
    accounts_.Attach(thread, *ended);
  }
  [[nodiscard]] int signal() const { return accounts_.signal(); }
  void set_signal(int signal) { accounts_.set_signal(signal); }

  // Moves every record into the recordings, and settles the accounts of threads that have ended.
  // Returns the fullest ring's fill, 0 to 1, or the number of those threads as a share of
  // kManyEndedThreads, if that is more. Returns 1 if it finished walks, because their records take
  // up the rings. If memory runs out, records stay in their rings, and accounts unsettled, for the
  // next call.
  double Drain() {
    code_.RefreshIfChanged(drain_.intake());
    if (accounts_.TakePostponed()) Begin();
    double fill = 0;
    registry_.VisitMarked([&](Thread& thread) {
      fill = std::max(fill, static_cast<double>(registry_.UsedBytes(thread)) /
                                static_cast<double>(registry_.arena()->ring_bytes()));
      if (!counters_.HasMemoryFor([&] { drain_.Drain(thread); }))
        registry_.arena()->MarkAgain(thread.index());
    });
    if (drain_.TakeDeferred()) fill = 1;
    const std::vector<Thread*> retired = registry_.CopyRetired();
    fill = std::max(fill, static_cast<double>(retired.size()) / kManyEndedThreads);
    for (Thread* thread : retired) Finish(*thread);
    if (!retired.empty()) registry_.ReclaimRetired(retired.size());
    code_.Publish();
    counters_.drains.fetch_add(1, std::memory_order_relaxed);
    CountOverflows();
    counters_.aggregator_bytes.store(recorder().memory_bytes(), std::memory_order_relaxed);
    return fill;
  }

  // See ThreadPoller.
  std::int64_t Poll(const typename Traits::Platform::Instant& since_wake, std::int64_t now_ns) {
    return poller_.Poll(since_wake, now_ns);
  }

  // See InstantRounds.
  bool LeaveCpu() { return poller_.LeaveCpu(); }

  // Attaches all registered threads. Call it after the registry's BeginCollecting. Threads that
  // register later attach themselves.
  void Begin() {
    registry_.VisitAll([this](Thread& thread) { Attach(thread); });
  }

  // Detaches every thread. From now on Attach does nothing. The collector may still be at work.
  void End() {
    accounts_.End();
    registry_.VisitAll([this](Thread& thread) { Detach(thread); });
  }

  // Settles all accounts. Call it after End, and after the collector has ended.
  void FinishAll() {
    static_cast<void>(counters_.HasMemoryFor([this] { Drain(); }));
    registry_.EndCollecting([this](Thread& thread) { FinishOrDrop(thread); });
    registry_.DiscardAll();
  }

  // Takes the period that ends now. The continuous recording continues with the next period; if
  // memory runs out, with this one.
  RecordedPeriod TakePeriod() {
    const Recording::Time now = Now();
    SettleThreads();
    counters_.SetUnregistered(unregistered_.EndPeriod(registry_.IdsOf(threads_)));
    const std::span<const SpanNumber> slow = SlowUnderWay(recorder().continuous());
    ReclaimIdleMemory(now.monotonic_ns);
    AddLevels(recorder().continuous(), levels_);
    drain_.kept_stacks().ForgetUnused();
    RecordedPeriod period = recorder().continuous().Take(ProcessLabels(), now, slow);
    CountOverflows();
    period.samples.zone_frames = zone_frames_;
    levels_.Forget();
    code_.RetryUnread();
    return period;
  }
  // Counts the period as dropped: there is no memory to take it.
  void CountPeriodDropped() {
    counters_.periods_dropped.fetch_add(1, std::memory_order_relaxed);
    counters_.amount_dropped.fetch_add(recorder().continuous().Sum(DefaultColumn(columns_)),
                                       std::memory_order_relaxed);
  }

  // Begins a recording, beside the continuous one, of all that is drained from now on. Call it
  // after a Drain. Returns its place, valid until EndRecording(place); nothing if memory runs out.
  // Until then, the provider of its first column has that period or a shorter one, if it is rated.
  std::optional<std::size_t> BeginRecording(const RecordingColumns& columns,
                                            std::int64_t period_ns = 0) {
    SettleThreads();
    const std::optional<std::size_t> place = recorder().Begin(IndicesOf(columns), Now());
    if (!place) {
      CountOutOfMemory();
      return place;
    }
    poller_.AskForPeriod(*place, columns[0].provider, period_ns);
    return place;
  }
  // Takes the samples of the recording in that place. Call it after a Drain. Returns nothing if
  // memory has run out in the recording.
  std::optional<RecordedPeriod> TakeRecording(std::size_t place) {
    SettleThreads();
    Recording* const recording = recorder().At(place);
    if (recording == nullptr) {
      CountOutOfMemory();
      return std::nullopt;
    }
    const std::span<const SpanNumber> slow = SlowUnderWay(*recording);
    LevelRows<Providers> levels;
    AddLevels(*recording, levels);
    RecordedPeriod period = recording->Take(ProcessLabels(), Now(), slow);
    period.samples.zone_frames = zone_frames_;
    return period;
  }
  // Begins the recording whose periods are kept; call it after a Drain. False if memory runs out.
  bool BeginKept() {
    SettleThreads();
    return recorder().BeginKept(IndicesOf(columns_), Now());
  }
  // Takes what has been recorded there since the last call. Call it after a Drain. Returns nothing
  // if the recording has not begun, or memory has run out in it.
  std::optional<RecordedPeriod> TakeKept() {
    Recording* const recording = recorder().At(Recorder::kKeptPlace);
    if (recording == nullptr) return std::nullopt;
    const Recording::Time now = Now();
    SettleThreads();
    RecordedPeriod period = recording->Take(ProcessLabels(), now);
    period.samples.zone_frames = zone_frames_;
    return period;
  }
  // The same, for a moment that follows a TakeKept at once: only the providers' levels. If that
  // throws std::bad_alloc, a part of the levels may be in the recording: begin it anew.
  std::optional<RecordedPeriod> TakeLevels() {
    Recording* const recording = recorder().At(Recorder::kKeptPlace);
    if (recording == nullptr || !LevelRows<Providers>::kHasLevels) return std::nullopt;
    LevelRows<Providers> levels;
    AddLevels(*recording, levels);
    return recording->Take(ProcessLabels(), Now());
  }
  // The slow spans of the process, those under way included, in order.
  [[nodiscard]] std::vector<SpanNumber> SlowSpansNow() {
    const std::span<const SpanNumber> slow = SlowUnderWay();
    return ProcessSlowSpans().Sorted(slow);
  }
  void EndRecording(std::size_t place) {
    recorder().End(place);
    poller_.AskForPeriod(place, 0, 0);
  }

 private:
  void CountOverflows() {
    counters_.SetOverflows(earlier_overflows_ + recorder().continuous().overflows());
  }
  void CountOutOfMemory() { counters_.out_of_memory.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] Recorder& recorder() { return drain_.intake().recorder(); }
  [[nodiscard]] Recording::Time Now() const {
    return {.monotonic_ns = clock_.MonotonicNs(), .unix_ns = clock_.UnixTimeNs()};
  }

  // The spans that are under way and over their thresholds, until the next call: they count as slow
  // in what ends now. A span that ends meanwhile is in ProcessSlowSpans, so look there afterwards.
  std::span<const SpanNumber> SlowUnderWay() {
    slow_under_way_.clear();
    const std::int64_t now_ns = SystemClock().MonotonicNs();  // that of SlowSpan
    registry_.VisitAll([&](Thread& thread) {
      if (const SpanNumber span = thread.context->SlowSpan(now_ns)) slow_under_way_.push_back(span);
    });
    return slow_under_way_;
  }
  // Looks at no thread unless the recording has a sample in a span.
  std::span<const SpanNumber> SlowUnderWay(const Recording& recording) {
    if (recording.has_spans()) return SlowUnderWay();
    return {};
  }

  // Adds what the providers' levels are now.
  void AddLevels(Recording& recording, LevelRows<Providers>& levels) {
    if constexpr (LevelRows<Providers>::kHasLevels) {
      if (levels_key_ == Thread::kNoKey) levels_key_ = drain_.intake().AddThread(0, "[live]");
      levels.Add(accounts_.providers(), drain_.kept_stacks(), recording, levels_key_,
                 registry_.arena()->code().generation.load(std::memory_order_relaxed));
    }
  }

  // Settles the accounts of all threads, so that what has been drained adds up to their clocks. A
  // thread whose registration has ended since the last drain is finished: its clock is known then.
  void SettleThreads() {
    registry_.CopyAll(threads_);
    for (Thread* thread : threads_) {
      if (!SettleAttached(*thread)) Finish(*thread);
    }
  }
  // Returns false if the registration has ended, and its account is open: until that is finished,
  // no thread is attached here. One that has just begun may be attached at any time.
  bool SettleAttached(Thread& thread) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (thread.is_attached) drain_.Settle(thread);
    return thread.is_attached || !thread.needs_finish;
  }

  // Gives back the memory of threads that are long idle, or gone.
  void ReclaimIdleMemory(std::int64_t now_ns) {
    if (now_ns - memory_seen_to_ns_ < kLongIdleNs) return;
    registry_.CopyAll(threads_);
    for (Thread* thread : threads_) {
      const std::lock_guard lock(registry_.ControlMutex(*thread));
      DiscardIfIdle(*thread);
    }
    registry_.DiscardIdle();
    memory_seen_to_ns_ = now_ns;
  }

  // Gives back an idle thread's memory. A signal that comes meanwhile is a late one: its weight
  // goes into the residual.
  void DiscardIfIdle(Thread& thread) {
    if (!thread.is_attached || !ChannelArena<Traits>::IsLongIdle(*thread.channel)) return;
    thread.channel->is_active.store(false, std::memory_order_seq_cst);
    const bool is_idle = !thread.channel->is_capturing.load(std::memory_order_seq_cst) &&
                         thread.channel->counters.captures.load(std::memory_order_relaxed) ==
                             thread.channel->counters.seen_captures &&
                         thread.channel->ring.used_bytes() == 0;
    if (is_idle) registry_.arena()->Discard(thread.index());
    thread.channel->is_active.store(true, std::memory_order_seq_cst);
  }

  void Finish(Thread& thread) {
    if (!thread.needs_finish) return;
    poller_.Forget(thread);
    drain_.Finish(thread);
  }

  // Like Finish, if there is no later call: what finds no memory is dropped, and counted.
  void FinishOrDrop(Thread& thread) {
    if (!counters_.HasMemoryFor([&] { Finish(thread); })) drain_.Drop(thread);
  }

  ThreadRegistry<Traits>& registry_;
  LoadedCode<Traits>& code_;
  CollectorCounters& counters_;
  const Overflows earlier_overflows_;
  typename Traits::Clock clock_;
  ThreadAccounts<Traits> accounts_;
  ChannelDrain<Traits> drain_;
  ThreadPoller<Traits> poller_;
  const RecordingColumns columns_;
  const bool zone_frames_;
  UnregisteredCheck<typename Traits::Platform> unregistered_{counters_};
  std::vector<Thread*> threads_;               // scratch
  std::vector<SpanNumber> slow_under_way_;     // scratch
  LevelRows<Providers> levels_;                // of the continuous recording
  std::uint32_t levels_key_ = Thread::kNoKey;  // the intake's thread that has the levels
  std::int64_t memory_seen_to_ns_ = 0;
};

}  // namespace internal
}  // namespace strobe
