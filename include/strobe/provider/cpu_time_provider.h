// CpuTimeProvider: where each thread spends its CPU time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "strobe/base/atomic_access.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// How a thread's samples are triggered decides whether the thread can be in step with them:
// * A timer on the thread's CPU clock costs nothing while the thread is idle. But such timers
//   expire on the kernel's tick, and a thread that works for short times, driven by a timer of its
//   own, can run in step with the tick. A thread that computes for many ticks without a wait
//   cannot.
// * Random instants (see InstantProvider) are in step with nothing, but each costs a wake-up.
// * A timer on the thread's CPU clock that expires at random is in step with nothing, and exact on
//   busy machines too. But not every system allows it, and it makes each switch to the thread, and
//   away from it, dearer.
// sampling.trigger chooses. By default a thread begins with a timer on the tick, so that one that
// soon ends is sampled at the asked rate, whatever the budget says. It keeps that while it computes
// for long without a wait, or is idle for long. A thread that turns out to work for short times
// gets a random timer if the system allows it and the budget pays for it, and else instants.
class CpuTimeProvider {
 public:
  static constexpr bool kBringsNoFiles = true;
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
  // At its first review, when it may have used less than that, a thread keeps its timer if it
  // computes for this long: for several ticks.
  static constexpr std::int64_t kFirstLongRunNs = 20'000'000;
  // A thread that has not run for this long has a timer.
  static constexpr std::uint32_t kIdleMs = 2'000;

  // What a random timer costs with Linux's perf events: for each time that the thread gives up its
  // CPU and gets it again, and for each sample. Measured in a virtual machine: bench/accuracy.
  static constexpr double kRandomTimerSwitchNs = 2'300;
  static constexpr double kRandomTimerSampleNs = 3'500;

  // A random timer that has not expired for so many of its mean times stands still.
  static constexpr std::int64_t kStillPeriods = 20;

  struct ThreadState {
    TimerKind timer = TimerKind::kNone;
    // Of a random timer: how many of its mean times have passed without an expiry, and the number
    // of its expiries then, modulo 2^16.
    std::uint8_t still_periods : 7 = 0;
    bool has_given_up : 1 = false;  // any timer, because the thread blocks the signal
    std::uint16_t seen_expiries = 0;
    // At the last review that found that the thread had run:
    std::uint32_t ran_at_ms = 0;  // the time; wraps
    std::int64_t cpu_ns = 0;
    std::int64_t wait_count = -1;
  };

  explicit CpuTimeProvider(const SamplingOptions& options)
      : period_ns_(*options.cpu_frequency_hz > 0
                       ? static_cast<std::int64_t>(1e9 / *options.cpu_frequency_hz)
                       : 0),
        current_period_ns_(period_ns_),
        trigger_(*options.trigger),
        max_overhead_(*options.max_overhead) {}

  [[nodiscard]] bool enabled() const { return period_ns_ > 0; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  void SetPeriod(std::int64_t period_ns) {
    internal::AtomicStore(current_period_ns_, period_ns, std::memory_order_relaxed);
  }
  void Retime(SampleTarget& thread, ThreadState& state, RandomSource& random) const {
    const TimerKind timer = state.timer;
    StopTimer(thread, state);
    if (timer == TimerKind::kPeriodic) StartTimer(thread, state, random);
    if (timer == TimerKind::kRandom) StartRandomTimer(thread, state, random);
  }

  void Attach(SampleTarget& thread, ThreadState& state, RandomSource& random, std::int64_t now_ns) {
    state = {.ran_at_ms = InMs(now_ns), .cpu_ns = thread.attach_cpu_ns()};
    if (trigger_ == SampleTrigger::kTimers || trigger_ == SampleTrigger::kAuto)
      StartTimer(thread, state, random);
    if (trigger_ == SampleTrigger::kPerf) StartRandomTimer(thread, state, random);
  }

  std::optional<std::int64_t> Detach(SampleTarget& thread, ThreadState& state,
                                     std::int64_t now_ns) {
    return Residual(thread, state, thread.credited_weight(), now_ns);
  }

  std::optional<std::int64_t> Residual(SampleTarget& thread, const ThreadState& /*state*/,
                                       std::int64_t weight_ns, std::int64_t /*now_ns*/) const {
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    // The clock of a thread that has ended cannot be read, or belongs to a new thread with the same
    // id.
    if (thread.attach_cpu_ns() < 0 || cpu_ns < thread.attach_cpu_ns()) return std::nullopt;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(cpu_ns - thread.attach_cpu_ns()) -
                                     static_cast<std::uint64_t>(weight_ns));
  }

  [[nodiscard]] bool IsAtInstants(const ThreadState& state) const {
    return state.timer == TimerKind::kNone;
  }

  void Review(SampleTarget& thread, ThreadState& state, RandomSource& random,
              const ThreadReview& review) {
    const bool is_auto = trigger_ == SampleTrigger::kAuto;
    if (state.has_given_up || !IsAtInstants(state)) LookAtMask(thread, state, random);
    if (state.has_given_up) return;
    if (!is_auto && state.timer != TimerKind::kRandom) return;
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    const std::int64_t used_ns = cpu_ns - state.cpu_ns;
    if (used_ns <= 0) {
      // A random timer costs an idle thread nothing either.
      if (IsAtInstants(state) && InMs(review.now_ns) - state.ran_at_ms >= kIdleMs)
        StartTimer(thread, state, random);
      return;
    }
    // It takes a period of CPU time to say more of a thread that was idle.
    if (used_ns < current_period_ns() && !IsAtInstants(state)) return;
    if (state.timer == TimerKind::kRandom) StartAnewIfStill(thread, state, random, used_ns);
    // The first review goes by the thread's whole life.
    const bool is_first = state.wait_count < 0;
    const std::int64_t wait_count = thread.WaitCount();
    Doings doings{.used_ns = used_ns, .waits = used_ns, .is_first = is_first};
    doings.affordable_rate_hz = review.affordable_rate_hz;
    if (wait_count >= 0) {
      doings.used_ns = is_first ? cpu_ns : used_ns;
      doings.waits = wait_count - (is_first ? 0 : state.wait_count);
    }
    state.ran_at_ms = InMs(review.now_ns);
    state.cpu_ns = cpu_ns;
    state.wait_count = wait_count;
    if (is_auto) Choose(thread, state, random, doings);
  }

 private:
  // A thread that has begun to block the signal has no timer until it blocks it no longer: it is
  // sampled at instants, which look at the mask each time.
  void LookAtMask(SampleTarget& thread, ThreadState& state, RandomSource& random) const {
    const bool is_blocked = thread.BlocksSignal();
    if (is_blocked == state.has_given_up) return;
    StopTimer(thread, state);
    state.has_given_up = is_blocked;
    if (!is_blocked && trigger_ == SampleTrigger::kTimers) StartTimer(thread, state, random);
    if (!is_blocked && trigger_ == SampleTrigger::kPerf) StartRandomTimer(thread, state, random);
  }

  // Another thread may set it meanwhile.
  [[nodiscard]] std::int64_t current_period_ns() const {
    return internal::AtomicLoad(current_period_ns_, std::memory_order_relaxed);
  }

  static std::uint32_t InMs(std::int64_t time_ns) {
    return static_cast<std::uint32_t>(time_ns / 1'000'000);
  }

  // The rate of the kernel's tick, as most distributions have it.
  static constexpr double kTickRateHz = 250;

  // What a thread has done since the last review.
  struct Doings {
    std::int64_t used_ns = 0;
    std::int64_t waits = 0;
    bool is_first = false;
    double affordable_rate_hz = 0;
  };
  void Choose(SampleTarget& thread, ThreadState& state, RandomSource& random,
              const Doings& doings) {
    // Timers expire at the tick's rate at most.
    const bool may_be_faster = 1e9 / static_cast<double>(current_period_ns()) > kTickRateHz &&
                               doings.affordable_rate_hz > kTickRateHz;
    // A thread that has not waited at all may only have had few CPUs: on a busy machine, instants
    // would seldom find it on one.
    if (doings.waits == 0 && state.timer == TimerKind::kPeriodic && !may_be_faster) return;
    const std::int64_t run_ns = doings.used_ns / std::max<std::int64_t>(doings.waits, 1);
    if (doings.is_first && run_ns >= kFirstLongRunNs && state.timer == TimerKind::kPeriodic) return;
    if (run_ns >= kLongRunNs && !may_be_faster) {
      StartTimer(thread, state, random);
    } else if (is_random_timer_refused_ || !PaysForRandomTimer(doings.used_ns, doings.waits)) {
      StopTimer(thread, state);
    } else {
      // Where the system has refused one such timer, it would refuse the others.
      is_random_timer_refused_ = !StartRandomTimer(thread, state, random);
    }
  }

  // Whether the budget pays for a random timer of a thread that has waited so often in that time.
  [[nodiscard]] bool PaysForRandomTimer(std::int64_t used_ns, std::int64_t waits) const {
    const auto time_ns = static_cast<double>(used_ns);
    const double samples = time_ns / static_cast<double>(current_period_ns());
    return kRandomTimerSwitchNs * static_cast<double>(waits) + kRandomTimerSampleNs * samples <=
           max_overhead_ * time_ns;
  }

  // A random timer stands still if the signal of its expiry was lost, or if the program has closed
  // the kernel's file. The probability that a running one does not expire for so long is 10^-9.
  void StartAnewIfStill(SampleTarget& thread, ThreadState& state, RandomSource& random,
                        std::int64_t used_ns) const {
    const auto expiries =
        static_cast<std::uint16_t>(thread.credited_weight() / current_period_ns());
    const bool is_still = expiries == state.seen_expiries;
    state.seen_expiries = expiries;
    state.still_periods = static_cast<std::uint8_t>(
        is_still ? std::min(state.still_periods + used_ns / current_period_ns(), kStillPeriods)
                 : 0);
    if (state.still_periods < kStillPeriods) return;
    StopTimer(thread, state);
    StartRandomTimer(thread, state, random);
  }

  // If the system refuses the timer, the thread is sampled at instants. The first period ends at a
  // uniform instant, so that the mean number of samples is right from the beginning.
  void StartTimer(SampleTarget& thread, ThreadState& state, RandomSource& random) const {
    if (state.timer == TimerKind::kPeriodic) return;
    StopTimer(thread, state);
    const double period =
        static_cast<double>(current_period_ns()) * (1 + kDither * (2 * random.Uniform() - 1));
    const auto at_least_one = [](double time_ns) {
      return std::max<std::int64_t>(static_cast<std::int64_t>(time_ns), 1);
    };
    if (thread.StartCpuTimer(at_least_one(period * (1 - random.Uniform())), at_least_one(period)))
      state.timer = TimerKind::kPeriodic;
  }
  // False if the system refuses: then the thread is sampled at instants.
  bool StartRandomTimer(SampleTarget& thread, ThreadState& state, RandomSource& random) const {
    if (state.timer == TimerKind::kRandom) return true;
    StopTimer(thread, state);
    if (!thread.StartRandomTimer(current_period_ns(), random.Bits())) return false;
    state.timer = TimerKind::kRandom;
    state.still_periods = 0;
    return true;
  }
  static void StopTimer(SampleTarget& thread, ThreadState& state) {
    if (state.timer != TimerKind::kNone) thread.StopCpuTimer();
    state.timer = TimerKind::kNone;
  }

  std::int64_t period_ns_;
  std::int64_t current_period_ns_;
  SampleTrigger trigger_;
  double max_overhead_;
  bool is_random_timer_refused_ = false;  // written by Review
};
static_assert(InstantProvider<CpuTimeProvider> && RatedProvider<CpuTimeProvider>);

}  // namespace strobe
