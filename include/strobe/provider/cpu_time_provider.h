// CpuTimeProvider: where each thread spends its CPU time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "strobe/provider/sample_provider.h"

namespace strobe {

// How a thread's samples are triggered decides whether the thread can be in step with them:
// * A timer on the thread's CPU clock costs nothing while the thread is idle. But such timers
//   expire on the kernel's tick, and a thread that works for short times, driven by a timer of its
//   own, can run in step with the tick. A thread that computes for many ticks without a wait
//   cannot.
// * Random instants (see InstantProvider) are in step with nothing, but each costs a wake-up.
// sampling.trigger chooses. By default a thread begins at instants. A thread that then computes for
// long without a wait, or is idle for long, gets a timer; a thread that works for short times gets
// instants again.
class CpuTimeProvider {
 public:
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"samples", "count"},
                                                        ValueType{"cpu", "nanoseconds"}};
  static constexpr bool kCountsSamples = true;
  // A timer's period differs from the requested one by at most this share, so that threads are in
  // step neither with each other nor with the kernel's tick.
  static constexpr double kDither = 0.03;
  // A thread that computes for this long between two waits has a timer. The tick is at most 10 ms,
  // and a timer's samples are late by up to a tick: they misplace less than a tick's share of the
  // time between two waits.
  static constexpr std::int64_t kLongRunNs = 250'000'000;
  // A thread that has not run for this long has a timer.
  static constexpr std::uint32_t kIdleMs = 2'000;

  struct ThreadState {
    bool has_timer = false;
    // At the last review that found that the thread had run:
    std::uint32_t ran_at_ms = 0;  // the time; wraps
    std::int64_t cpu_ns = 0;
    std::int64_t wait_count = -1;
  };

  explicit CpuTimeProvider(const SamplingOptions& options)
      : period_ns_(*options.cpu_frequency_hz > 0
                       ? static_cast<std::int64_t>(1e9 / *options.cpu_frequency_hz)
                       : 0),
        trigger_(*options.trigger) {}

  [[nodiscard]] bool enabled() const { return period_ns_ > 0; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  void Attach(SampledThread& thread, ThreadState& state, RandomSource& random,
              std::int64_t now_ns) {
    state = {.ran_at_ms = InMs(now_ns), .cpu_ns = thread.attach_cpu_ns()};
    if (trigger_ == SampleTrigger::kTimers) StartTimer(thread, state, random);
  }

  std::optional<std::int64_t> Detach(SampledThread& thread, ThreadState& state,
                                     std::int64_t now_ns) {
    return Residual(thread, state, thread.credited_weight(), now_ns);
  }

  std::optional<std::int64_t> Residual(SampledThread& thread, const ThreadState& /*state*/,
                                       std::int64_t weight_ns, std::int64_t /*now_ns*/) const {
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    // The clock of a thread that has ended cannot be read, or belongs to a new thread with the same
    // id.
    if (thread.attach_cpu_ns() < 0 || cpu_ns < thread.attach_cpu_ns()) return std::nullopt;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(cpu_ns - thread.attach_cpu_ns()) -
                                     static_cast<std::uint64_t>(weight_ns));
  }

  [[nodiscard]] bool IsAtInstants(const ThreadState& state) const { return !state.has_timer; }

  void Review(SampledThread& thread, ThreadState& state, RandomSource& random,
              const ThreadReview& review) {
    if (trigger_ != SampleTrigger::kAuto) return;
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    const std::int64_t used_ns = cpu_ns - state.cpu_ns;
    if (used_ns <= 0) {
      if (InMs(review.now_ns) - state.ran_at_ms >= kIdleMs) StartTimer(thread, state, random);
      return;
    }
    // It takes a period of CPU time to say more of a thread that was idle.
    if (used_ns < period_ns_ && state.has_timer) return;
    const std::int64_t wait_count = thread.WaitCount();
    const bool is_known = wait_count >= 0 && state.wait_count >= 0;
    const std::int64_t waits = is_known ? wait_count - state.wait_count : used_ns;
    state = {.has_timer = state.has_timer,
             .ran_at_ms = InMs(review.now_ns),
             .cpu_ns = cpu_ns,
             .wait_count = wait_count};
    // Timers expire at the tick's rate at most.
    const bool may_be_faster = 1e9 / static_cast<double>(period_ns_) > kTickRateHz &&
                               review.affordable_rate_hz > kTickRateHz;
    if (used_ns / std::max<std::int64_t>(waits, 1) < kLongRunNs || may_be_faster) {
      StopTimer(thread, state);
    } else {
      StartTimer(thread, state, random);
    }
  }

 private:
  static std::uint32_t InMs(std::int64_t time_ns) {
    return static_cast<std::uint32_t>(time_ns / 1'000'000);
  }

  // The rate of the kernel's tick, as most distributions have it.
  static constexpr double kTickRateHz = 250;

  // If the system refuses the timer, the thread is sampled at instants. The first period ends at a
  // uniform instant, so that the mean number of samples is right from the beginning.
  void StartTimer(SampledThread& thread, ThreadState& state, RandomSource& random) const {
    if (state.has_timer) return;
    const double period =
        static_cast<double>(period_ns_) * (1 + kDither * (2 * random.Uniform() - 1));
    const auto at_least_one = [](double time_ns) {
      return std::max<std::int64_t>(static_cast<std::int64_t>(time_ns), 1);
    };
    state.has_timer =
        thread.StartCpuTimer(at_least_one(period * (1 - random.Uniform())), at_least_one(period));
  }
  static void StopTimer(SampledThread& thread, ThreadState& state) {
    if (state.has_timer) thread.StopCpuTimer();
    state.has_timer = false;
  }

  std::int64_t period_ns_;
  SampleTrigger trigger_;
};
static_assert(InstantProvider<CpuTimeProvider>);

}  // namespace strobe
