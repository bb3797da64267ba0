// CpuTimeProvider: where each thread spends its CPU time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "strobe/provider/sample_provider.h"

namespace strobe {

// Interrupts each thread by a timer on its own CPU clock, so that an idle thread costs nothing. The
// first expiry is uniform in (0, period], and each thread's period is dithered, so that threads are
// in step neither with each other nor with the kernel's tick. If the system refuses the timer, the
// collector polls that thread's CPU clock once per period and requests a stack if the clock has
// advanced.
class CpuTimeProvider {
 public:
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"samples", "count"},
                                                        ValueType{"cpu", "nanoseconds"}};
  // A thread's period differs from the requested one by at most this share.
  static constexpr double kDither = 0.03;

  static constexpr bool kSkipsIdleThreads = true;

  struct ThreadState {
    std::int64_t period_ns = 0;
    // Fallback: CPU time up to which weight has been requested. kHasTimer if there is a timer.
    std::int64_t polled_ns = kHasTimer;
    std::int64_t residual_ns = 0;  // that the last call of Residual returned

    static constexpr std::int64_t kHasTimer = INT64_MIN;
    [[nodiscard]] bool is_on_fallback() const { return polled_ns != kHasTimer; }
  };

  explicit CpuTimeProvider(const SamplingOptions& options)
      : period_ns_(*options.cpu_frequency_hz > 0
                       ? static_cast<std::int64_t>(1e9 / *options.cpu_frequency_hz)
                       : 0),
        use_timers_(*options.use_timers) {}

  [[nodiscard]] bool enabled() const { return period_ns_ > 0; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  void Attach(SampledThread& thread, ThreadState& state, RandomSource& random,
              std::int64_t /*now_ns*/) {
    const double period =
        static_cast<double>(period_ns_) * (1 + kDither * (2 * random.Uniform() - 1));
    state.period_ns = std::max<std::int64_t>(static_cast<std::int64_t>(period), 1);
    // The first period ends at a uniform instant. Without a timer, it began that much earlier.
    const auto first_ns =
        std::max<std::int64_t>(static_cast<std::int64_t>(period * (1 - random.Uniform())), 1);
    state.residual_ns = 0;
    const bool has_timer = use_timers_ && thread.StartCpuTimer(first_ns, state.period_ns);
    state.polled_ns =
        has_timer ? ThreadState::kHasTimer : thread.attach_cpu_ns() - (state.period_ns - first_ns);
    if (!has_timer) fallback_threads_.fetch_add(1, std::memory_order_relaxed);
  }

  std::int64_t Detach(SampledThread& thread, ThreadState& state, std::int64_t now_ns) {
    if (state.is_on_fallback()) fallback_threads_.fetch_sub(1, std::memory_order_relaxed);
    return Residual(thread, state, thread.credited_weight(), now_ns);
  }

  std::int64_t Residual(SampledThread& thread, ThreadState& state, std::int64_t weight,
                        std::int64_t /*now_ns*/) const {
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    // The clock of a thread that has ended cannot be read, or belongs to a new thread with the same
    // id. Then only the credited amount is known.
    if (thread.attach_cpu_ns() >= 0 && cpu_ns >= thread.attach_cpu_ns()) {
      state.residual_ns =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(cpu_ns - thread.attach_cpu_ns()) -
                                    static_cast<std::uint64_t>(ValueNs(weight, state)));
    }
    return state.residual_ns;
  }

  std::int64_t poll_period_ns(RandomSource& random) const {
    if (fallback_threads_.load(std::memory_order_relaxed) == 0) return 0;
    return static_cast<std::int64_t>(static_cast<double>(period_ns_) * (0.5 + random.Uniform()));
  }

  PollVerdict Poll(SampledThread& thread, ThreadState& state, std::int64_t /*now_ns*/) {
    if (!state.is_on_fallback()) return {};
    const std::int64_t periods = (thread.CpuTimeNs() - state.polled_ns) / state.period_ns;
    if (periods <= 0) return {};
    state.polled_ns += periods * state.period_ns;
    return {.action = PollVerdict::Action::kRequest, .weight = periods};
  }

  void AddWeight(std::int64_t weight, const ThreadState& state, std::span<std::int64_t> row) const {
    row[0] += weight;
    row[1] += ValueNs(weight, state);
  }
  void AddResidual(std::int64_t residual_ns, std::span<std::int64_t> row) const {
    row[1] += residual_ns;
  }

 private:
  // The weight comes from a ring and is not trusted, so this must be defined for every value.
  static std::int64_t ValueNs(std::int64_t weight, const ThreadState& state) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(weight) *
                                     static_cast<std::uint64_t>(state.period_ns));
  }

  std::int64_t period_ns_;
  bool use_timers_;
  std::atomic<std::int64_t> fallback_threads_{0};
};
static_assert(ClockedProvider<CpuTimeProvider> && PolledProvider<CpuTimeProvider>);

}  // namespace strobe
