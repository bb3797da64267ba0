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
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/thread_accounts.h"
#include "strobe/runtime/polls/collector_cpu.h"
#include "strobe/runtime/polls/idle_threads.h"
#include "strobe/runtime/polls/overhead_budget.h"
#include "strobe/runtime/threads/provider_view.h"
#include "strobe/runtime/threads/thread_probes.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The time between two reviews of how threads are sampled. The first ones come sooner: until then
// a thread that works for short times has a timer, and may be in step with it.
inline constexpr std::int64_t kReviewPeriodNs = 1'000'000'000;
inline constexpr std::int64_t kFirstReviewPeriodNs = 50'000'000;
// How often the masks of threads with timers are looked at, where the collector wakes as often.
inline constexpr std::int64_t kMaskPeriodNs = 40'000'000;
// The least time between two instants: a shorter one would find the collector still at work.
inline constexpr std::int64_t kLeastGapNs = 20'000;

// What a sample costs its thread: the signal and its handler. bench/run.sh sample measures it.
inline constexpr std::int64_t kSampleCostNs = 3'000;

// What it costs to wake for an instant and to wait again, beside what the instant itself does.
inline constexpr std::int64_t kWakeCostNs = 8'000;

// Of one InstantProvider, number kIndex of the list. Used by the collector. Where the platform can
// keep the collector on a CPU, an instant samples the thread that the collector displaces there:
// see CollectorCpu. Elsewhere, and for threads that do not yield, it samples all CPUs from the one
// on which the collector wakes.
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
        requested_rate_hz_(RateHz(accounts.period_ns(kIndex))),
        budget_(max_overhead, requested_rate_hz_) {}

  [[nodiscard]] bool IsDue(std::int64_t now_ns) const { return due_ns_ <= now_ns; }

  // Samples if an instant is due, and reviews the threads if that is due. `since_wake` began when
  // the calling thread woke. Returns when the next instant is due, or INT64_MAX while no thread is
  // sampled at instants; then call it whenever the collector wakes.
  template <class Provider>
  std::int64_t Run(Provider& provider, const typename Platform::Instant& since_wake,
                   std::int64_t now_ns) {
    const bool is_due = IsDue(now_ns);
    // A look at the own clock would bring the account up to date that tells when this thread began.
    if constexpr (requires { since_wake.scheduled_ns(); }) {
      if (is_due && cpu_.cpu() != kAnyCpu) static_cast<void>(since_wake.scheduled_ns());
    }
    const std::int64_t begin_ns = is_due ? CallingThreadCpuNs<Platform>() : 0;
    if (is_due) Sample(provider, since_wake, now_ns - due_ns_);
    if (attachments_ != accounts_.attachments()) ListThreads(provider);
    const bool is_review_due = now_ns >= next_review_ns_;
    if (is_review_due) Review(provider, now_ns);
    if (now_ns >= next_mask_check_ns_) CheckMasks(provider, now_ns);
    if (at_instants_.empty()) {
      if (std::exchange(due_ns_, INT64_MAX) != INT64_MAX) cpu_.Leave();
    } else if (is_due || is_review_due || due_ns_ == INT64_MAX) {
      Plan();
    }
    if (is_due) spent_ns_ += kWakeCostNs + CallingThreadCpuNs<Platform>() - begin_ns;
    return due_ns_;
  }

  // If the calling thread is kept on a CPU for the next instant, lets it go, and forgets the
  // instant: for work that takes time. The next Run plans another one, so it must come after that
  // work. Returns whether that is so.
  bool LeaveCpu() {
    if (cpu_.cpu() == kAnyCpu) return false;
    cpu_.Leave();
    due_ns_ = INT64_MAX;
    return true;
  }

  // Plans the instants, and how threads are sampled, for another sampling period: at the next Run.
  void SetPeriod(std::int64_t period_ns) {
    requested_rate_hz_ = RateHz(period_ns);
    budget_.set_requested_rate_hz(requested_rate_hz_);
    attachments_ = kUnknown;  // timers may have been refused
    next_review_ns_ = 0;
    review_period_ns_ = kFirstReviewPeriodNs;
  }

  // Forgets what is known of a thread whose registration has ended, or that is attached anew.
  void Forget(const Thread& thread) {
    idle_.Forget(thread.index());
    reviewed_idle_.Forget(thread.index());
    if (thread.index() < keeps_cpu_.size()) keeps_cpu_[thread.index()] = false;
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
    GoToCpu();
    mean_gap_ns_ = static_cast<std::int64_t>(1e9 / budget_.rate_hz());
    const double gap_ns = random_.Exponential(static_cast<double>(mean_gap_ns_));
    due_ns_ = clock_.MonotonicNs() + std::max(static_cast<std::int64_t>(gap_ns), kLeastGapNs);
  }

  // Goes to the CPU that the next instant samples, and asks for as many instants as give each
  // thread the requested rate.
  void GoToCpu() {
    NoteCpu();
    cpu_.Go(random_, clock_.MonotonicNs());
    budget_.set_requested_rate_hz(requested_rate_hz_ / cpu_.HitProbability());
  }
  // Notes where one of the threads is that have run of late: the one that has just been sampled, or
  // any. Now and then any, in any case: the others may be where no instant is.
  void NoteCpu() {
    if constexpr (StaysOnCpus<Platform>) {
      constexpr double kAny = 0.25;
      if (!cpu_.is_choosing() || at_instants_.empty()) return;
      const std::size_t busy = std::max<std::size_t>(busy_, 1);
      if (std::exchange(has_found_, false) && random_.Uniform() >= kAny)
        return cpu_.Note(cpu_.cpu(), busy);
      const std::size_t count = busy_ == 0 ? at_instants_.size() : busy_;
      const auto drawn = static_cast<std::size_t>(random_.Uniform() * static_cast<double>(count));
      Thread& thread = *at_instants_[std::min(drawn, count - 1)].thread;
      const std::lock_guard lock(registry_.ControlMutex(thread));
      if (thread.is_attached && !KeepsCpu(thread)) cpu_.Note(probes_.Of(thread).LastCpu(), busy);
    }
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
    busy_ = 0;
    std::ranges::copy_if(listed_, std::back_inserter(at_instants_), &Listed::is_at_instants);
    CountAtInstants();
  }

  // Looks at all threads before it interrupts the first, because an interruption takes as long as
  // many looks: each thread should be seen at the same instant.
  template <class Provider>
  void Sample(Provider& provider, const typename Platform::Instant& since_wake,
              std::int64_t late_ns) {
    counters_.instants.fetch_add(1, std::memory_order_relaxed);
    const bool is_in_time = cpu_.IsInTime(late_ns);
    bool has_ended = false;
    running_.clear();
    displaced_.clear();
    busy_ = VisitBusy(at_instants_, idle_, kLeastGapNs, [&](Listed& listed) {
      listed.is_at_instants = LookAt(*listed.thread, provider);
      has_ended |= !listed.is_at_instants;
    });
    for (Thread* thread : running_)
      Interrupt(*thread, provider, mean_gap_ns_, [](auto& /*probe*/) { return true; });
    if (!is_in_time) displaced_.clear();
    const auto gap_ns = static_cast<double>(mean_gap_ns_) / cpu_.probability();
    has_found_ = false;
    for (Thread* thread : displaced_) {
      Interrupt(*thread, provider, static_cast<std::int64_t>(gap_ns), [&](auto& probe) {
        const bool was_displaced = probe.WasDisplaced(since_wake);
        has_found_ |= was_displaced;
        return was_displaced;
      });
    }
    if (!has_ended) return;
    std::erase_if(at_instants_, [](const Listed& listed) { return !listed.is_at_instants; });
    busy_ = 0;
    CountAtInstants();
  }
  void CountAtInstants() {
    counters_.threads_at_instants.store(at_instants_.size(), std::memory_order_relaxed);
  }

  // Visits the threads that are not idle, and the idle ones if they may have used more than
  // `max_ns`: see IdleThreads. No thread is always the first. Those that are not idle are the first
  // then: returns how many.
  template <class Visitor>
  static std::size_t VisitBusy(std::vector<Listed>& threads, IdleThreads<Platform>& idle_threads,
                               std::int64_t max_ns, const Visitor& visit) {
    if (threads.empty()) return 0;
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
    return static_cast<std::size_t>(idle - threads.begin());
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
    const bool is_elsewhere = cpu_.cpu() == kAnyCpu || KeepsCpu(thread);
    if (look == ThreadPoll::kRuns && is_elsewhere) running_.push_back(&thread);
    if (look == ThreadPoll::kHasRun && !KeepsCpu(thread)) displaced_.push_back(&thread);
    idle_.Note(thread.index(), thread.attach_cpu_ns, probe.seen_cpu_ns());
    return true;
  }

  [[nodiscard]] bool KeepsCpu(const Thread& thread) const {
    return thread.index() < keeps_cpu_.size() && keeps_cpu_[thread.index()];
  }

  // Requests a stack of the thread that stands for so long a time, if is_wanted(probe).
  template <class Provider, class IsWanted>
  void Interrupt(Thread& thread, Provider& provider, std::int64_t weight_ns,
                 const IsWanted& is_wanted) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (!IsSampled(thread, provider) || !is_wanted(probes_.Of(thread))) return;
    ProviderView<Traits>(thread, kIndex, accounts_.signal(), &probes_.Of(thread))
        .Request(weight_ns, /*was_running=*/true);
  }

  // Reviews the threads that may have run since the last review.
  template <class Provider>
  void Review(Provider& provider, std::int64_t now_ns) {
    NoteUsage();
    cpu_.LookAtCpus();
    next_review_ns_ = now_ns + review_period_ns_;
    review_period_ns_ = std::min(2 * review_period_ns_, kReviewPeriodNs);
    const ThreadReview review = ReviewAt(now_ns);
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
    const ThreadReview review = ReviewAt(now_ns);
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
      NoteWhetherItYields(thread);
    } else {
      probes_.Forget(thread);
    }
  }

  void NoteWhetherItYields(Thread& thread) {
    if constexpr (StaysOnCpus<Platform>) {
      if (!cpu_.is_choosing()) return;
      if (thread.index() >= keeps_cpu_.size()) keeps_cpu_.resize(thread.index() + 1);
      keeps_cpu_[thread.index()] = !probes_.Of(thread).YieldsAtOnce();
    }
  }

  // The rate that the budget pays for is that of one thread's samples.
  [[nodiscard]] ThreadReview ReviewAt(std::int64_t now_ns) const {
    return {.now_ns = now_ns,
            .affordable_rate_hz = budget_.affordable_rate_hz() * cpu_.HitProbability()};
  }

  void NoteUsage() {
    const std::int64_t now_ns = clock_.MonotonicNs();
    if (!budget_.IsDue(now_ns)) return;
    budget_.Note({.monotonic_ns = now_ns,
                  .process_cpu_ns = Platform::ProcessCpuTimeNs(),
                  .profiler_cpu_ns =
                      spent_ns_ + kSampleCostNs * static_cast<std::int64_t>(counters_.samples.load(
                                                      std::memory_order_relaxed)),
                  .instants = static_cast<std::int64_t>(
                      counters_.instants.load(std::memory_order_relaxed))});
  }

  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  ThreadAccounts<Traits>& accounts_;
  ThreadProbes<Traits>& probes_;
  typename Traits::Clock& clock_;
  RandomSource random_{static_cast<std::uint64_t>(clock_.MonotonicNs())};
  double requested_rate_hz_;  // of a thread's samples
  OverheadBudget budget_;
  std::int64_t spent_ns_ = 0;  // CPU time for instants; drains are not for them alone
  CollectorCpu<Platform> cpu_;
  std::size_t busy_ = 0;         // so many of at_instants_, the first, were not idle
  bool has_found_ = false;       // the last instant's CPU had such a thread
  std::vector<bool> keeps_cpu_;  // by the thread's index: whether it does not yield
  std::int64_t due_ns_ = INT64_MAX;
  std::int64_t mean_gap_ns_ = 0;  // before the next instant
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
