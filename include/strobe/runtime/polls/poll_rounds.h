// PollRounds: when the collector polls the threads for one provider, which of them, and in what
// order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/polls/idle_threads.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Rounds take at most this share of a core: if they cost more, they come less often. A provider
// that measures the time since its last poll still measures all of it, at fewer instants.
inline constexpr std::int64_t kPollCostShare = 100;  // one part in this many
// The longest mean time between two rounds that this leads to.
inline constexpr std::int64_t kMaxPollDelayNs = 1'000'000'000;
// The cost is the median of this many rounds. Some rounds, above all the first, also build unwind
// tables, so their cost does not predict that of the others.
inline constexpr std::size_t kPollCostRounds = 8;
// A thread that has been idle counts as idle while the process has used no more CPU time than this
// that the busy threads do not explain. A thread that wakes and waits again uses more.
inline constexpr std::int64_t kMostUnseenNs = 2'000;
// Busy threads that run during a round hide some microseconds of idle ones. So each round also
// reads the clock of one idle thread in this many, in turn.
inline constexpr std::size_t kIdleTurns = 16;

// Used by the collector, for one provider.
template <class Platform>
class PollRounds {
 public:
  [[nodiscard]] bool IsDue(std::int64_t now_ns) const { return due_ns_ != 0 && now_ns >= due_ns_; }
  // True if Plan must be called.
  [[nodiscard]] bool IsOpen(std::int64_t now_ns) const { return due_ns_ == 0 || now_ns >= due_ns_; }
  // The time of the next round; INT64_MAX if none is planned.
  [[nodiscard]] std::int64_t due_ns() const { return due_ns_ == 0 ? INT64_MAX : due_ns_; }

  // Plans the next round, a random time after `now_ns`: `mean_ns` in the mean, or more if the
  // rounds cost too much; none if `mean_ns` is 0. The time has an exponential distribution, so no
  // program is in step with the rounds. Returns false if the cost of the rounds delays it.
  bool Plan(std::int64_t now_ns, std::int64_t mean_ns, RandomSource& random) {
    const std::int64_t least_ns = std::min(CostNs() * kPollCostShare, kMaxPollDelayNs);
    const double gap_ns = random.Exponential(static_cast<double>(std::max(mean_ns, least_ns)));
    due_ns_ = mean_ns == 0 ? 0 : now_ns + 1 + static_cast<std::int64_t>(gap_ns);
    return mean_ns == 0 || least_ns <= mean_ns;
  }

  // Runs a round over the threads that list(threads) lists: calls poll(thread, -1), or, for an idle
  // thread, poll(thread, cpu_ns): its CPU clock has not advanced since it read `cpu_ns`.
  template <class Thread, class List, class PollThread>
  void RunAll(std::vector<Thread*>& threads, List list, PollThread poll) {
    const std::int64_t begin_ns = CallingThreadCpuNs<Platform>();
    list(threads);
    Rotate(threads);
    // Not stable: that would need memory in each round.
    const auto first_idle =
        std::partition(threads.begin(), threads.end(),
                       [&](const Thread* thread) { return !idle_.IsIdle(thread->index()); });
    const std::span<Thread*> idle(first_idle, threads.end());
    if (!idle.empty()) idle_.BeginRound();
    for (auto thread = threads.begin(); thread != first_idle; ++thread) poll(**thread, -1);
    const auto poll_unknown = [&](Thread* thread) { poll(*thread, -1); };
    const auto poll_known = [&](Thread* thread) {
      const std::size_t index = thread->index();
      poll(*thread, index % kIdleTurns == rounds_ % kIdleTurns ? -1 : idle_.CpuNs(index));
    };
    if (!idle.empty()) idle_.EndRound(idle, kMostUnseenNs, poll_unknown, poll_known);
    costs_ns_[rounds_ % kPollCostRounds] =
        std::max<std::int64_t>(CallingThreadCpuNs<Platform>() - begin_ns, 0);
  }

  // Notes what the poll of a thread has read: see IdleThreads.
  void Note(std::size_t index, std::int64_t attach_cpu_ns, std::int64_t cpu_ns) {
    idle_.Note(index, attach_cpu_ns, cpu_ns);
  }
  // Forgets the thread of the thread with that index.
  void Forget(std::size_t index) { idle_.Forget(index); }

 private:
  // Rotates the threads, so that no thread is always polled first.
  template <class Thread>
  void Rotate(std::vector<Thread*>& threads) {
    ++rounds_;
    if (!threads.empty())
      std::rotate(threads.begin(),
                  threads.begin() + static_cast<std::ptrdiff_t>(rounds_ % threads.size()),
                  threads.end());
  }

  // CPU time of a round; 0 until more than half of kPollCostRounds have run.
  [[nodiscard]] std::int64_t CostNs() const {
    std::array<std::int64_t, kPollCostRounds> costs_ns = costs_ns_;
    const auto median = costs_ns.begin() + kPollCostRounds / 2 - 1;
    std::nth_element(costs_ns.begin(), median, costs_ns.end());
    return *median;
  }

  std::int64_t due_ns_ = 0;  // 0 for none
  std::array<std::int64_t, kPollCostRounds> costs_ns_{};
  std::size_t rounds_ = 0;
  IdleThreads<Platform> idle_;
};

}  // namespace internal
}  // namespace strobe
