// IdleThreads: which threads need no poll, because only those that are polled can have run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// The collector's, for one provider. A clock is a system call, so a round polls the
// busy threads. It polls the idle ones only where the process has used more CPU time than the busy
// threads and the collector. The cost is that of the busy threads plus one. Where a thread runs
// whose clock is not polled, the idle threads are polled in vain.
template <class Platform>
class IdleThreads {
 public:
  // The clocks of some systems advance by 10 ms and more: one that stood still at fewer polls says
  // nothing.
  static constexpr int kStillPolls = 16;

  // Of the slot of that index.
  [[nodiscard]] bool IsIdle(std::size_t index) const {
    return index < seen_.size() && seen_[index].still_polls >= kStillPolls;
  }

  // Before it is known which threads a round polls.
  void BeginRound() { round_ = ReadClocks(); }

  // A poll of a thread is over. Its clock said `attach_cpu_ns` when it was attached, and `cpu_ns`
  // now; less than 0 where it was not read: then it is busy.
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

  // The slot will have another thread, which is busy.
  void Forget(std::size_t index) {
    if (index < seen_.size()) seen_[index] = {};
  }

  // After the polls of the busy threads: polls the idle ones where they may have used more than
  // `max_ns` since they were polled, and else the first alone: a clock that is not what it should
  // be must not hide a thread for ever.
  template <class Slot, class PollThread>
  void EndRound(std::span<Slot* const> idle, std::int64_t max_ns, PollThread poll) {
    const Clocks now = ReadClocks();
    const std::int64_t unexplained_ns =
        (now.process_ns - since_.process_ns) - (now.own_ns - since_.own_ns) - explained_ns_;
    const bool is_explained = now.process_ns >= 0 && unexplained_ns <= max_ns;
    for (Slot* slot :
         idle.first(is_explained ? std::min<std::size_t>(idle.size(), 1) : idle.size()))
      poll(*slot);
    if (is_explained) return;
    // Not as of now: what busy threads used since their polls would be explained by their next
    // ones, and hide an idle thread for as long. What they used before their polls of this round
    // stays unexplained, which leads to a poll too many at worst.
    since_ = round_;
    explained_ns_ = 0;
  }

 private:
  struct Clocks {
    std::int64_t process_ns = 0;
    std::int64_t own_ns = 0;
  };
  static Clocks ReadClocks() {
    return {.process_ns = Platform::ProcessCpuTimeNs(),
            .own_ns = Platform::ThreadCpuTimeNs(Platform::CurrentThreadId())};
  }

  // What the polls of one slot's thread have seen.
  struct Seen {
    std::int64_t cpu_ns = -1;  // less than 0 before the first
    int still_polls = 0;       // how often in a row the clock stood still
  };

  std::vector<Seen> seen_;  // by the slot's index
  Clocks round_;            // as of the round's beginning
  Clocks since_;  // as of the beginning of the round in which the idle threads were polled last
  std::int64_t explained_ns_ = 0;  // used after that round by the threads that were polled
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
