// IdleThreads: which threads need no poll, because the threads that are polled explain all CPU time
// of the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What the calling thread's CPU clock reads.
template <class Platform>
std::int64_t CallingThreadCpuNs() {
  return Platform::ThreadCpuTimeNs(Platform::CurrentThreadId());
}

// Used by the collector, for one provider. Reading a clock is a system call, so a round polls the
// busy threads. It polls the idle threads only if the process has used more CPU time than the busy
// threads and the collector. The cost is that of the busy threads plus one. If a thread runs whose
// clock is not polled, the idle threads are polled in vain.
template <class Platform>
class IdleThreads {
 public:
  // A thread is idle if its clock stood still at this many polls in a row. Where clocks advance by
  // 10 ms and more, fewer polls prove nothing.
  static constexpr int kStillPolls = Platform::kHasFineCpuClocks ? 2 : 16;

  // True if the thread with that index is idle.
  [[nodiscard]] bool IsIdle(std::size_t index) const {
    return index < seen_.size() && seen_[index].still_polls >= kStillPolls;
  }

  // What the idle thread's clock read at its last poll.
  [[nodiscard]] std::int64_t CpuNs(std::size_t index) const { return seen_[index].cpu_ns; }

  // Begins a round. Call it before choosing the threads that the round polls.
  void BeginRound() { round_ = ReadClocks(); }

  // Notes a poll of a thread, whose clock read `attach_cpu_ns` at the attachment and reads `cpu_ns`
  // now. A negative `cpu_ns` means that the poll did not read the clock: such a poll changes
  // nothing.
  void Note(std::size_t index, std::int64_t attach_cpu_ns, std::int64_t cpu_ns) {
    if (cpu_ns < 0) return;
    if (index >= seen_.size()) seen_.resize(index + 1);
    Seen& seen = seen_[index];
    if (seen.cpu_ns < 0) seen.cpu_ns = attach_cpu_ns;
    if (cpu_ns == seen.cpu_ns) {
      if (seen.still_polls < kStillPolls) ++seen.still_polls;
      return;
    }
    explained_ns_ += cpu_ns - seen.cpu_ns;
    seen = {.cpu_ns = cpu_ns};
  }

  // The thread counts as busy until further polls find that it is idle.
  void KeepBusy(std::size_t index) {
    if (index < seen_.size()) seen_[index].still_polls = 0;
  }

  // Forgets the thread. The next one with that index counts as busy.
  void Forget(std::size_t index) {
    if (index < seen_.size()) seen_[index] = {};
  }

  // Ends a round, after the polls of the busy threads. Polls all idle threads if they may have used
  // more than `max_ns` since their last poll. Else polls only the first one, so that a wrong clock
  // cannot hide a thread for ever.
  template <class Thread, class PollThread>
  void EndRound(std::span<Thread> idle, std::int64_t max_ns, PollThread poll) {
    const bool is_explained = IsExplained(max_ns);
    for (Thread& thread :
         idle.first(is_explained ? std::min<std::size_t>(idle.size(), 1) : idle.size()))
      poll(thread);
    if (!is_explained) BeginAnew();
  }
  // The same for a round that does something for each idle thread: else calls poll_known(thread)
  // for each. The thread has not run since its last poll, as far as is known.
  template <class Thread, class PollThread, class PollKnown>
  void EndRound(std::span<Thread> idle, std::int64_t max_ns, PollThread poll,
                PollKnown poll_known) {
    const bool is_explained = IsExplained(max_ns);
    for (Thread& thread : idle) {
      if (is_explained) {
        poll_known(thread);
      } else {
        poll(thread);
      }
    }
    if (!is_explained) BeginAnew();
  }

 private:
  struct Clocks {
    std::int64_t process_ns = 0;
    std::int64_t own_ns = 0;
  };
  static Clocks ReadClocks() {
    return {.process_ns = Platform::ProcessCpuTimeNs(), .own_ns = CallingThreadCpuNs<Platform>()};
  }

  // True if the idle threads have used at most `max_ns` since all of them were polled.
  [[nodiscard]] bool IsExplained(std::int64_t max_ns) const {
    const std::int64_t unexplained_ns =
        (round_.process_ns - since_.process_ns) - (round_.own_ns - since_.own_ns) - explained_ns_;
    return round_.process_ns >= 0 && unexplained_ns <= max_ns;
  }
  // All idle threads have been polled.
  void BeginAnew() {
    // The clocks are those of the round's beginning. So what a busy thread used from then to its
    // poll is explained before it counts: the few microseconds of a round may hide as much time of
    // an idle thread, until the next round.
    since_ = round_;
    explained_ns_ = 0;
  }

  // What the polls of one thread have seen.
  struct Seen {
    std::int64_t cpu_ns = -1;  // less than 0 before the first
    int still_polls = 0;       // how often in a row the clock stood still
  };

  std::vector<Seen> seen_;  // by the thread's index
  Clocks round_;            // as of the round's beginning
  Clocks since_;  // as of the beginning of the round in which the idle threads were polled last
  std::int64_t explained_ns_ = 0;  // used after since_ by the polled threads
};

}  // namespace internal
}  // namespace strobe
