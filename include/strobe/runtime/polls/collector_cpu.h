// CollectorCpu: keeps the collector on the CPU that the next instant samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/polls/cpu_choice.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// If the collector gets its CPU later than this after an instant, the thread on it has let it go:
// at the end of a system call that the kernel does not interrupt, or because its turn was over. On
// a machine with more runnable threads than CPUs, another one may have had the CPU when the instant
// came, and the thread is not sampled.
inline constexpr std::int64_t kPromptNs = 50'000;
// Later than this it is not sampled in any case: what is left of calls beyond this is not seen.
inline constexpr std::int64_t kMostLateNs = 1'000'000;
// If the collector gets its CPU later than kStarvedNs, a thread that does not yield holds that CPU.
// For kRestNs after that, the collector stays on no CPU.
inline constexpr std::int64_t kStarvedNs = 50'000'000;
inline constexpr std::int64_t kRestNs = 10'000'000'000;

// A thread on another CPU gets a signal late: the interrupt from CPU to CPU takes microseconds, and
// if the thread leaves a system call meanwhile, the kernel delivers the signal there. Of a loop
// with a call every 50 µs, 8 % of such samples were at the call, which takes 0.3 % of the time. So
// where the collector gets its CPU at once when an instant comes, it waits on the CPU that it
// samples. The thread that it displaces has been stopped by the timer's interrupt, and its sample
// is where that came. Used by the collector.
template <class Platform>
class CollectorCpu {
 public:
  // Goes to a CPU for the next instant. Does nothing where the platform cannot do this.
  void Go(RandomSource& random, std::int64_t now_ns) {
    if constexpr (StaysOnCpus<Platform>) {
      if (!wakes_in_time_.has_value()) {
        wakes_in_time_ = Platform::WakeInTime();
        LookAtCpus();
      }
      if (std::exchange(is_starved_, false)) rest_until_ns_ = now_ns + kRestNs;
      if (!is_choosing() || now_ns < rest_until_ns_) return Leave();
      draw_ = choice_.Choose(random);
      if (Platform::StayOn(draw_.cpu)) return;
      choice_.Forget(draw_.cpu);
      Leave();
    }
  }
  // Until the next Go the collector may run anywhere.
  void Leave() {
    draw_ = {};
    if constexpr (StaysOnCpus<Platform>) static_cast<void>(Platform::StayOn(kAnyCpu));
  }
  // Call it now and then: the program, or its user, may change the CPUs that it may use.
  void LookAtCpus() {
    if constexpr (StaysOnCpus<Platform>) {
      if (wakes_in_time_.value_or(false)) choice_.SetCpus(Platform::Cpus());
    }
  }
  // One of so many threads that run now and then has been seen on that CPU.
  void Note(int cpu, std::size_t threads) { choice_.Note(cpu, threads); }

  // The CPU on which the collector is kept for the next instant; kAnyCpu if it is not kept: then an
  // instant samples all CPUs.
  [[nodiscard]] int cpu() const { return draw_.cpu; }
  // The probability that this CPU was drawn.
  [[nodiscard]] double probability() const { return draw_.probability; }
  // The share of the instants that find a thread, in the mean over those that run.
  [[nodiscard]] double HitProbability() const {
    return cpu() == kAnyCpu ? 1 : choice_.HitProbability();
  }
  // Whether there are CPUs to choose among.
  [[nodiscard]] bool is_choosing() const { return choice_.has_cpus(); }
  // Whether the collector has woken on the CPU of its instant, and soon enough after it. If not,
  // the instant must sample no thread of that CPU.
  [[nodiscard]] bool IsInTime(std::int64_t late_ns) {
    if constexpr (StaysOnCpus<Platform>) {
      if (cpu() == kAnyCpu) return true;
      is_starved_ |= late_ns > kStarvedNs;
      return late_ns <= kMostLateNs && Platform::CurrentCpu() == cpu() &&
             (late_ns <= kPromptNs || !Platform::IsSaturated());
    }
    return true;
  }

 private:
  CpuChoice choice_;  // has no CPUs where the collector does not wake in time
  CpuChoice::Draw draw_;
  std::optional<bool> wakes_in_time_;  // known from the first Go on
  bool is_starved_ = false;
  std::int64_t rest_until_ns_ = INT64_MIN;
};

}  // namespace internal
}  // namespace strobe
