// Sleepers: which threads need no look, because nobody can have run but those that are looked at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/platform/capture_target.h"

namespace strobe::internal {

// The collector's. A clock is a system call, so a round of looks goes to the threads that are awake, and to those that sleep only where the
// process has used more CPU time than the ones that are awake and the collector: so it costs what those cost that run, and one. Where
// somebody runs who is not registered, the sleepers are looked at in vain.
template <class Platform>
class Sleepers {
 public:
  // The clocks of some systems advance by 10 ms and more: one that stood still at fewer looks says nothing.
  static constexpr int kStillLooks = 16;

  // Of the slot of that index; whoever has it.
  [[nodiscard]] bool IsAsleep(std::size_t index) const { return index < seen_.size() && seen_[index].still_looks >= kStillLooks; }

  // A look at a thread is over. Its clock said `attach_cpu_ns` when it was attached, and `cpu_ns` now; less than 0 where nobody has asked.
  void Note(const SlotToken& token, std::int64_t attach_cpu_ns, std::int64_t cpu_ns) {
    if (token.index >= seen_.size()) seen_.resize(token.index + 1);
    Seen& seen = seen_[token.index];
    if (seen.use != token.use) seen = {.use = token.use, .cpu_ns = attach_cpu_ns};
    if (cpu_ns < 0 || cpu_ns == seen.cpu_ns) {
      if (seen.still_looks < kStillLooks) ++seen.still_looks;
      return;
    }
    explained_ns_ += cpu_ns - seen.cpu_ns;
    seen.cpu_ns = cpu_ns;
    seen.still_looks = 0;
  }

  // After the looks at those who are awake: looks at the sleepers where they may have used more than `max_ns` since they were looked at,
  // and else at the first alone: a clock that is not what it should be must not hide a thread for ever.
  template <class Slot, class LookAt>
  void EndRound(std::span<Slot* const> sleepers, std::int64_t max_ns, LookAt look_at) {
    const std::int64_t process_ns = Platform::ProcessCpuTimeNs();
    const std::int64_t own_ns = Platform::ThreadCpuTimeNs(Platform::CurrentThreadId());
    const std::int64_t unexplained_ns = (process_ns - process_ns_) - (own_ns - own_ns_) - explained_ns_;
    const bool is_explained = process_ns >= 0 && unexplained_ns <= max_ns;
    for (Slot* slot : sleepers.first(is_explained ? std::min<std::size_t>(sleepers.size(), 1) : sleepers.size())) look_at(*slot);
    if (is_explained) return;
    process_ns_ = process_ns;
    own_ns_ = own_ns;
    explained_ns_ = 0;
  }

 private:
  // What the looks at one slot's thread have seen.
  struct Seen {
    std::int32_t use = -1;  // the token's
    int still_looks = 0;    // how often in a row the clock stood still
    std::int64_t cpu_ns = 0;
  };

  std::vector<Seen> seen_;       // by the slot's index
  std::int64_t process_ns_ = 0;  // this and the next as of the last look at the sleepers
  std::int64_t own_ns_ = 0;
  std::int64_t explained_ns_ = 0;  // used since then by those who were looked at
};

}  // namespace strobe::internal
