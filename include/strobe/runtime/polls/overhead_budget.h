// OverheadBudget: how many random instants a second the profiler can afford.
#pragma once

#include <algorithm>
#include <cstdint>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What was used since the session began.
struct ProfilerUsage {
  std::int64_t monotonic_ns = 0;
  std::int64_t process_cpu_ns = 0;   // by the whole process, the profiler included
  std::int64_t profiler_cpu_ns = 0;  // by the collector for the instants, and by handlers
  std::int64_t instants = 0;
};

// Divides the budget, a share of the process's CPU time, by what an instant has cost of late. There
// is no feedback from the rate to itself but through that cost, so the rate does not oscillate: if
// a part of the cost does not depend on the rate, the rate approaches its limit from one side.
class OverheadBudget {
 public:
  // An idle process is still sampled at this rate while one of its threads runs.
  static constexpr double kLeastRateHz = 1;
  // What is assumed before the first measurement: that an instant costs a wake-up and two signals,
  // and that the process keeps one CPU busy.
  static constexpr double kFirstCostNs = 60'000;
  static constexpr double kFirstCpus = 1;
  // For this long after its begin, a session may cost this share of a CPU: a program that runs only
  // for a moment is sampled, too.
  static constexpr std::int64_t kFreeNs = 1'000'000'000;
  static constexpr double kFreeOverhead = 0.05;
  // A measurement takes at least this long.
  static constexpr std::int64_t kLeastNs = 250'000'000;
  // The weight of the newest measurement. Samples of one period should weigh about the same.
  static constexpr double kNewest = 0.2;

  // `max_overhead` is a share of the process's CPU time. The rate is between kLeastRateHz and
  // `requested_rate_hz`.
  OverheadBudget(double max_overhead, double requested_rate_hz)
      : max_overhead_(max_overhead), requested_rate_hz_(requested_rate_hz) {}

  void set_requested_rate_hz(double rate_hz) { requested_rate_hz_ = rate_hz; }

  // True if the last measurement is long enough ago.
  [[nodiscard]] bool IsDue(std::int64_t now_ns) const {
    return begin_ns_ < 0 || now_ns - last_.monotonic_ns >= kLeastNs;
  }
  // Takes a measurement if one is due.
  void Note(const ProfilerUsage& usage) {
    if (!IsDue(usage.monotonic_ns)) return;
    if (begin_ns_ < 0) {
      begin_ns_ = usage.monotonic_ns;
    } else {
      Measure(usage, static_cast<double>(usage.monotonic_ns - last_.monotonic_ns));
    }
    last_ = usage;
  }

  // Instants per second, for as long as nothing changes.
  [[nodiscard]] double rate_hz() const {
    if (last_.monotonic_ns - begin_ns_ < kFreeNs) {
      const double free_hz = 1e9 * std::max(max_overhead_, kFreeOverhead) / instant_cost_ns_;
      return std::min(requested_rate_hz_, free_hz);
    }
    return std::clamp(affordable_rate_hz(), std::min(kLeastRateHz, requested_rate_hz_),
                      requested_rate_hz_);
  }
  // The same without the limits.
  [[nodiscard]] double affordable_rate_hz() const {
    return 1e9 * max_overhead_ * cpus_ / instant_cost_ns_;
  }

 private:
  void Measure(const ProfilerUsage& usage, double time_ns) {
    const auto process_ns = static_cast<double>(usage.process_cpu_ns - last_.process_cpu_ns);
    const auto cost_ns = static_cast<double>(usage.profiler_cpu_ns - last_.profiler_cpu_ns);
    const std::int64_t instants = usage.instants - last_.instants;
    cpus_ += kNewest * (std::max(process_ns, 0.0) / time_ns - cpus_);
    if (instants > 0) {
      const double cost = std::max(cost_ns, 0.0) / static_cast<double>(instants);
      instant_cost_ns_ = std::max(instant_cost_ns_ + kNewest * (cost - instant_cost_ns_), 1.0);
    }
  }

  double max_overhead_;
  double requested_rate_hz_;
  double cpus_ = kFirstCpus;  // that the process keeps busy
  double instant_cost_ns_ = kFirstCostNs;
  std::int64_t begin_ns_ = -1;
  ProfilerUsage last_;
};

}  // namespace internal
}  // namespace strobe
