// InstantRounds: samples the threads that are on a CPU, at random instants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/thread_accounts.h"
#include "strobe/runtime/polls/idle_threads.h"
#include "strobe/runtime/polls/overhead_budget.h"
#include "strobe/runtime/threads/provider_view.h"
#include "strobe/runtime/threads/thread_probes.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The time between two reviews of how threads are sampled. The first ones come sooner: until then
// a busy thread costs more than it has to.
inline constexpr std::int64_t kReviewPeriodNs = 1'000'000'000;
inline constexpr std::int64_t kFirstReviewPeriodNs = 200'000'000;
// How often the masks of threads with timers are looked at, where the collector wakes as often.
inline constexpr std::int64_t kMaskPeriodNs = 40'000'000;
// The least time between two instants: a shorter one would find the collector still at work.
inline constexpr std::int64_t kLeastGapNs = 20'000;

// What a sample costs its thread: the signal and its handler. bench/run.sh sample measures it.
inline constexpr std::int64_t kSampleCostNs = 3'000;

// Of one InstantProvider, number kIndex of the list. Used by the collector.
template <class Traits, std::size_t kIndex>
class InstantRounds {
 public:
  using Thread = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  // All arguments but `max_overhead` must outlive this object.
  InstantRounds(ThreadRegistry<Traits>& registry, CollectorCounters& counters,
                ThreadAccounts<Traits>& accounts, ThreadProbes<Traits>& probes,
                typename Traits::Clock& clock, double max_overhead)
      : registry_(registry),
        counters_(counters),
        accounts_(accounts),
        probes_(probes),
        clock_(clock),
        budget_(max_overhead, RateHz(accounts.period_ns(kIndex))) {}

  // Samples if an instant is due, and reviews the threads if that is due. `since_wake` began when
  // the calling thread woke. Returns when the next instant is due, or INT64_MAX while no thread is
  // sampled at instants; then call it whenever the collector wakes.
  template <class Provider>
  std::int64_t Run(Provider& provider, const typename Platform::Instant& since_wake,
                   std::int64_t now_ns) {
    const bool is_due = due_ns_ <= now_ns;
    if (is_due) Sample(provider, since_wake);
    if (attachments_ != accounts_.attachments()) ListThreads(provider);
    const bool is_review_due = now_ns >= next_review_ns_;
    if (is_review_due) Review(provider, now_ns);
    if (now_ns >= next_mask_check_ns_) CheckMasks(provider, now_ns);
    if (at_instants_.empty()) {
      due_ns_ = INT64_MAX;
    } else if (is_due || is_review_due || due_ns_ == INT64_MAX) {
      Plan();
    }
    return due_ns_;
  }

  // Plans the instants, and how threads are sampled, for another sampling period: at the next Run.
  void SetPeriod(std::int64_t period_ns) {
    budget_.set_requested_rate_hz(RateHz(period_ns));
    attachments_ = kUnknown;  // timers may have been refused
    next_review_ns_ = 0;
    review_period_ns_ = kFirstReviewPeriodNs;
  }

  // Forgets what is known of a thread whose registration has ended, or that is attached anew.
  void Forget(const Thread& thread) {
    idle_.Forget(thread.index());
    reviewed_idle_.Forget(thread.index());
  }

 private:
  // What a round reads of a thread that it does not visit: the thread itself lies elsewhere.
  struct Listed {
    Thread* thread = nullptr;
    std::uint32_t index = 0;  // of the thread
    bool is_at_instants = false;
  };

  static constexpr std::uint64_t kUnknown = UINT64_MAX;

  static double RateHz(std::int64_t period_ns) {
    return period_ns > 0 ? 1e9 / static_cast<double>(period_ns) : 0;
  }

  // Plans the next instant. It may be planned anew at any time, because the gap has no memory.
  void Plan() {
    NoteUsage();
    mean_gap_ns_ = static_cast<std::int64_t>(1e9 / budget_.rate_hz());
    const double gap_ns = random_.Exponential(static_cast<double>(mean_gap_ns_));
    due_ns_ = clock_.MonotonicNs() + std::max(static_cast<std::int64_t>(gap_ns), kLeastGapNs);
  }

  // Lists the threads. Those that end meanwhile stay listed, and are skipped.
  template <class Provider>
  void ListThreads(Provider& provider) {
    attachments_ = accounts_.attachments();
    registry_.CopyLive(threads_);
    listed_.clear();
    listed_.reserve(threads_.size());
    for (Thread* thread : threads_) {
      const std::lock_guard lock(registry_.ControlMutex(*thread));
      if (!thread->is_attached) continue;
      listed_.push_back(
          {.thread = thread,
           .index = thread->index(),
           .is_at_instants = provider.IsAtInstants(std::get<kIndex>(thread->states))});
    }
    ListThoseAtInstants();
  }
  void ListThoseAtInstants() {
    at_instants_.clear();
    std::ranges::copy_if(listed_, std::back_inserter(at_instants_), &Listed::is_at_instants);
    CountAtInstants();
  }

  // Looks at all threads before it interrupts the first, because an interruption takes as long as
  // many looks: each thread should be seen at the same instant.
  template <class Provider>
  void Sample(Provider& provider, const typename Platform::Instant& since_wake) {
    counters_.instants.fetch_add(1, std::memory_order_relaxed);
    bool has_ended = false;
    running_.clear();
    displaced_.clear();
    VisitBusy(at_instants_, idle_, kLeastGapNs, [&](Listed& listed) {
      listed.is_at_instants = LookAt(*listed.thread, provider);
      has_ended |= !listed.is_at_instants;
    });
    for (Thread* thread : running_)
      Interrupt(*thread, provider, [](auto& /*probe*/) { return true; });
    for (Thread* thread : displaced_)
      Interrupt(*thread, provider, [&](auto& probe) { return probe.WasDisplaced(since_wake); });
    if (!has_ended) return;
    std::erase_if(at_instants_, [](const Listed& listed) { return !listed.is_at_instants; });
    CountAtInstants();
  }
  void CountAtInstants() {
    counters_.threads_at_instants.store(at_instants_.size(), std::memory_order_relaxed);
  }

  // Visits the threads that are not idle, and the idle ones if they may have used more than
  // `max_ns`: see IdleThreads. No thread is always the first.
  template <class Visitor>
  static void VisitBusy(std::vector<Listed>& threads, IdleThreads<Platform>& idle_threads,
                        std::int64_t max_ns, const Visitor& visit) {
    if (threads.empty()) return;
    std::rotate(threads.begin(), threads.begin() + 1, threads.end());
    // Not std::ranges: clang 14 has none of libstdc++'s views. Not stable: that would need memory
    // in each round, and the busy threads, all before the idle ones, take their turns anyway.
    const auto idle = std::partition(threads.begin(), threads.end(), [&](const Listed& listed) {
      return !idle_threads.IsIdle(listed.index);
    });
    if (idle != threads.end()) idle_threads.BeginRound();
    for (auto listed = threads.begin(); listed != idle; ++listed) visit(*listed);
    if (idle != threads.end()) {
      idle_threads.EndRound(std::span<Listed>(idle, threads.end()), max_ns, visit);
    }
  }

  template <class Provider>
  static bool IsSampled(const Thread& thread, const Provider& provider) {
    return thread.is_attached && provider.IsAtInstants(std::get<kIndex>(thread.states));
  }

  // Lists the thread if it runs, or may have been displaced. False if it is not sampled at instants
  // any more.
  template <class Provider>
  bool LookAt(Thread& thread, Provider& provider) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (!IsSampled(thread, provider)) return false;
    auto& probe = probes_.Of(thread);
    const ThreadPoll look = probe.Poll();
    if (look == ThreadPoll::kRuns) running_.push_back(&thread);
    if (look == ThreadPoll::kHasRun) displaced_.push_back(&thread);
    idle_.Note(thread.index(), thread.attach_cpu_ns, probe.seen_cpu_ns());
    return true;
  }

  // Requests a stack of the thread, if is_wanted(probe).
  template <class Provider, class IsWanted>
  void Interrupt(Thread& thread, Provider& provider, const IsWanted& is_wanted) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (!IsSampled(thread, provider) || !is_wanted(probes_.Of(thread))) return;
    ProviderView<Traits>(thread, kIndex, accounts_.signal(), &probes_.Of(thread))
        .Request(mean_gap_ns_, /*was_running=*/true);
  }

  // Reviews the threads that may have run since the last review.
  template <class Provider>
  void Review(Provider& provider, std::int64_t now_ns) {
    NoteUsage();
    next_review_ns_ = now_ns + review_period_ns_;
    review_period_ns_ = std::min(2 * review_period_ns_, kReviewPeriodNs);
    const ThreadReview review{.now_ns = now_ns, .affordable_rate_hz = budget_.affordable_rate_hz()};
    bool has_changed = false;
    VisitBusy(listed_, reviewed_idle_, accounts_.period_ns(kIndex), [&](Listed& listed) {
      const bool was_at_instants = listed.is_at_instants;
      ReviewThread(listed, provider, review);
      has_changed |= listed.is_at_instants != was_at_instants;
    });
    if (has_changed) ListThoseAtInstants();
  }

  // Reviews the threads with timers that have begun to block the signal: each expiry would stay
  // pending. One that is idle has no expiry.
  template <class Provider>
  void CheckMasks(Provider& provider, std::int64_t now_ns) {
    next_mask_check_ns_ = now_ns + kMaskPeriodNs;
    const ThreadReview review{.now_ns = now_ns, .affordable_rate_hz = budget_.affordable_rate_hz()};
    bool has_changed = false;
    for (Listed& listed : listed_) {
      if (listed.is_at_instants || reviewed_idle_.IsIdle(listed.index) ||
          !BlocksSignal(*listed.thread))
        continue;
      ReviewThread(listed, provider, review);
      has_changed |= listed.is_at_instants;
    }
    if (has_changed) ListThoseAtInstants();
  }
  bool BlocksSignal(Thread& thread) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    return thread.is_attached &&
           ProviderView<Traits>(thread, kIndex, accounts_.signal(), &probes_.Of(thread))
               .BlocksSignal();
  }

  template <class Provider>
  void ReviewThread(Listed& listed, Provider& provider, const ThreadReview& review) {
    Thread& thread = *listed.thread;
    const std::lock_guard lock(registry_.ControlMutex(thread));
    listed.is_at_instants = false;
    if (!thread.is_attached) return;
    ProviderView<Traits> view(thread, kIndex, accounts_.signal(), &probes_.Of(thread));
    provider.Review(view, std::get<kIndex>(thread.states), random_, review);
    listed.is_at_instants = provider.IsAtInstants(std::get<kIndex>(thread.states));
    reviewed_idle_.Note(listed.index, thread.attach_cpu_ns, view.read_cpu_ns());
    if (listed.is_at_instants) {
      reviewed_idle_.KeepBusy(listed.index);  // the provider may want to change that soon
    } else {
      probes_.Forget(thread);
    }
  }

  void NoteUsage() {
    const std::int64_t now_ns = clock_.MonotonicNs();
    if (!budget_.IsDue(now_ns)) return;
    budget_.Note(
        {.monotonic_ns = now_ns,
         .process_cpu_ns = Platform::ProcessCpuTimeNs(),
         .profiler_cpu_ns = Platform::ThreadCpuTimeNs(Platform::CurrentThreadId()) +
                            kSampleCostNs * static_cast<std::int64_t>(
                                                counters_.samples.load(std::memory_order_relaxed)),
         .instants =
             static_cast<std::int64_t>(counters_.instants.load(std::memory_order_relaxed))});
  }

  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  ThreadAccounts<Traits>& accounts_;
  ThreadProbes<Traits>& probes_;
  typename Traits::Clock& clock_;
  RandomSource random_{static_cast<std::uint64_t>(clock_.MonotonicNs())};
  OverheadBudget budget_;
  std::int64_t due_ns_ = INT64_MAX;
  std::int64_t mean_gap_ns_ = 0;  // before the next instant: the weight of its samples
  std::int64_t next_review_ns_ = 0;
  std::int64_t next_mask_check_ns_ = 0;
  std::int64_t review_period_ns_ = kFirstReviewPeriodNs;
  std::uint64_t attachments_ = 0;  // that `threads_` knows of
  std::vector<Listed> listed_;
  std::vector<Listed> at_instants_;  // those of them that are sampled at instants
  std::vector<Thread*> threads_;     // scratch
  std::vector<Thread*> running_;     // scratch
  std::vector<Thread*> displaced_;   // scratch: those that may have been
  IdleThreads<Platform> idle_;
  IdleThreads<Platform> reviewed_idle_;
};

}  // namespace internal
}  // namespace strobe
