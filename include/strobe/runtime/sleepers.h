// Sleepers: which threads need no look, because only those that are looked at can have run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// The collector's, for one provider. A clock is a system call, so a round of looks goes to the
// threads that are awake, and to those that sleep only where the process has used more CPU time
// than the ones that are awake and the collector: so it costs what those cost that run, and one.
// Where a thread runs whose clock is not looked at, the sleepers are looked at in vain.
template <class Platform>
class Sleepers {
 public:
  // The clocks of some systems advance by 10 ms and more: one that stood still at fewer looks says
  // nothing.
  static constexpr int kStillLooks = 16;

  // Of the slot of that index.
  [[nodiscard]] bool IsAsleep(std::size_t index) const {
    return index < seen_.size() && seen_[index].still_looks >= kStillLooks;
  }

  // Before it is known who is to be looked at in a round.
  void BeginRound() { round_ = ReadClocks(); }

  // A look at a thread is over. Its clock said `attach_cpu_ns` when it was attached, and `cpu_ns`
  // now; less than 0 where it was not read: then it is awake.
  void Note(std::size_t index, std::int64_t attach_cpu_ns, std::int64_t cpu_ns) {
    if (cpu_ns < 0) return;
    if (index >= seen_.size()) seen_.resize(index + 1);
    Seen& seen = seen_[index];
    if (seen.cpu_ns < 0) seen.cpu_ns = attach_cpu_ns;
    if (cpu_ns == seen.cpu_ns) {
      if (seen.still_looks < kStillLooks) ++seen.still_looks;
      return;
    }
    explained_ns_ += cpu_ns - seen.cpu_ns;
    seen = {.cpu_ns = cpu_ns};
  }

  // The slot will have another thread, which is awake.
  void Forget(std::size_t index) {
    if (index < seen_.size()) seen_[index] = {};
  }

  // After the looks at those who are awake: looks at the sleepers where they may have used more
  // than `max_ns` since they were looked at, and else at the first alone: a clock that is not what
  // it should be must not hide a thread for ever.
  template <class Slot, class LookAt>
  void EndRound(std::span<Slot* const> sleepers, std::int64_t max_ns, LookAt look_at) {
    const Clocks now = ReadClocks();
    const std::int64_t unexplained_ns =
        (now.process_ns - since_.process_ns) - (now.own_ns - since_.own_ns) - explained_ns_;
    const bool is_explained = now.process_ns >= 0 && unexplained_ns <= max_ns;
    for (Slot* slot :
         sleepers.first(is_explained ? std::min<std::size_t>(sleepers.size(), 1) : sleepers.size()))
      look_at(*slot);
    if (is_explained) return;
    // Not as of now: what those who are awake used since their looks would be explained by their
    // next ones, and hide a sleeper for as long. What they used before their looks of this round
    // stays unexplained, which leads to a look too many at worst.
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

  // What the looks at one slot's thread have seen.
  struct Seen {
    std::int64_t cpu_ns = -1;  // less than 0 before the first
    int still_looks = 0;       // how often in a row the clock stood still
  };

  std::vector<Seen> seen_;  // by the slot's index
  Clocks round_;            // as of the round's beginning
  Clocks since_;  // as of the beginning of the round in which the sleepers were looked at last
  std::int64_t explained_ns_ = 0;  // used after that round by those who were looked at
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
