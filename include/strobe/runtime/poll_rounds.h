// PollRounds: when the collector polls the threads for one provider, which of them, and in what
// order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Rounds that poll every thread take at most this share of a core: if they cost more, the next
// round is delayed. A provider that measures the time since its last poll still measures all of it,
// at fewer instants.
inline constexpr std::int64_t kPollCostShare = 100;  // one part in this many
// The longest such delay.
inline constexpr std::int64_t kMaxPollDelayNs = 1'000'000'000;
// The cost is the median of this many rounds. Some rounds, above all the first, also build unwind
// tables, so their cost does not predict that of the others.
inline constexpr std::size_t kPollCostRounds = 8;

// Used by the collector, for one provider.
template <class Platform>
class PollRounds {
 public:
  [[nodiscard]] bool IsDue(std::int64_t now_ns) const { return due_ns_ != 0 && now_ns >= due_ns_; }
  // True if Plan must be called.
  [[nodiscard]] bool IsOpen(std::int64_t now_ns) const { return due_ns_ == 0 || now_ns >= due_ns_; }
  // The time of the next round; INT64_MAX if none is planned.
  [[nodiscard]] std::int64_t due_ns() const { return due_ns_ == 0 ? INT64_MAX : due_ns_; }

  // Plans the next round `period_ns` after `now_ns`; none if `period_ns` is 0. Returns false if the
  // cost of the rounds delays it.
  bool Plan(std::int64_t now_ns, std::int64_t period_ns) {
    const std::int64_t delay_ns = std::min(CostNs() * kPollCostShare, kMaxPollDelayNs);
    due_ns_ = period_ns == 0 ? 0 : now_ns + std::max(period_ns, delay_ns);
    return period_ns == 0 || delay_ns <= period_ns;
  }

  // Runs a round: calls copy(slots), then poll(slot) for each of the slots.
  template <class Slot, class Copy, class PollThread>
  void RunAll(std::vector<Slot*>& slots, Copy copy, PollThread poll) {
    const std::int64_t begin_ns = OwnCpuNs();
    copy(slots);
    Rotate(slots);
    for (Slot* slot : slots) poll(*slot);
    costs_ns_[rounds_ % kPollCostRounds] = std::max<std::int64_t>(OwnCpuNs() - begin_ns, 0);
  }

 private:
  static std::int64_t OwnCpuNs() { return Platform::ThreadCpuTimeNs(Platform::CurrentThreadId()); }

  // Rotates the slots, so that no thread is always polled first.
  template <class Slot>
  void Rotate(std::vector<Slot*>& slots) {
    ++rounds_;
    if (!slots.empty())
      std::rotate(slots.begin(),
                  slots.begin() + static_cast<std::ptrdiff_t>(rounds_ % slots.size()), slots.end());
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
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
