// WallTimeProvider: where each thread is while time passes, running or waiting.
#pragma once

#include <array>
#include <cstdint>

#include "strobe/provider/sample_provider.h"

namespace strobe {

// The collector polls every thread at jittered instants. A thread whose CPU clock has not advanced
// since its last capture is still in the same place: the weight of that stack grows, and the thread
// is not interrupted. So a waiting thread is interrupted at most once for each time that it ran.
class WallTimeProvider {
 public:
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"wall", "nanoseconds"}};
  // The most CPU time that a thread needs to return from the profiler's signal handler and to sleep
  // again. The capture notes the CPU clock inside the handler, so one advance up to this much does
  // not mean that the thread ran. A thread that did run for less than this in that interval, and
  // now waits elsewhere, keeps the earlier stack until it runs again.
  static constexpr std::int64_t kReturnCostNs = 50'000;

  struct ThreadState {
    std::int64_t attach_ns = 0;
    std::int64_t given_ns = 0;         // wall time requested or added so far
    std::int64_t capture_cpu_ns = -1;  // the capture that `settled_cpu_ns` belongs to
    std::int64_t settled_cpu_ns = -1;  // the CPU clock after the thread returned from that capture
  };

  explicit WallTimeProvider(const SamplingOptions& options)
      : period_ns_(*options.wall_frequency_hz > 0
                       ? static_cast<std::int64_t>(1e9 / *options.wall_frequency_hz)
                       : 0) {}

  [[nodiscard]] bool enabled() const { return period_ns_ > 0; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  void Attach(SampledThread& /*thread*/, ThreadState& state, RandomSource& /*random*/,
              std::int64_t now_ns) {
    state = ThreadState{.attach_ns = now_ns};
  }

  std::int64_t Detach(SampledThread& thread, ThreadState& state, std::int64_t now_ns) {
    return Residual(thread, state, thread.credited_weight(), now_ns);
  }

  std::int64_t Residual(SampledThread& /*thread*/, ThreadState& state, std::int64_t weight_ns,
                        std::int64_t now_ns) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns - state.attach_ns) -
                                     static_cast<std::uint64_t>(weight_ns));
  }

  // Uniform in (0.5, 1.5) periods, so that polls are not in step with a periodic program.
  std::int64_t poll_period_ns(RandomSource& random) const {
    return static_cast<std::int64_t>(static_cast<double>(period_ns_) * (0.5 + random.Uniform()));
  }

  PollVerdict Poll(SampledThread& thread, ThreadState& state, std::int64_t now_ns) {
    const std::int64_t elapsed_ns = now_ns - state.attach_ns - state.given_ns;
    if (elapsed_ns <= 0) return {};
    state.given_ns += elapsed_ns;
    using Action = PollVerdict::Action;
    return {.action = HasNotRun(thread, state) ? Action::kExtendLast : Action::kRequest,
            .weight = elapsed_ns,
            .wants_cpu_clock = true};
  }

 private:
  static bool HasNotRun(SampledThread& thread, ThreadState& state) {
    if (thread.request_pending()) return false;
    const std::int64_t capture_cpu_ns = thread.last_capture_cpu_ns();
    if (capture_cpu_ns < 0) return false;
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    if (capture_cpu_ns != state.capture_cpu_ns) {
      state.capture_cpu_ns = capture_cpu_ns;
      state.settled_cpu_ns = cpu_ns - capture_cpu_ns <= kReturnCostNs ? cpu_ns : -1;
    }
    return cpu_ns == state.settled_cpu_ns;
  }

  std::int64_t period_ns_;
};
static_assert(ClockedProvider<WallTimeProvider> && PolledProvider<WallTimeProvider>);

}  // namespace strobe
