// WallTimeProvider: where each thread is while time passes, running or waiting.
#pragma once

#include <array>
#include <cstdint>

#include "strobe/provider/sample_provider.h"

namespace strobe {

// The weight of a thread's stack is the time since the thread's last poll. So a stack's weights add
// up to the time that the thread spent there in the mean, and all weights of a thread to the time
// from its attachment to its last poll exactly.
class WallTimeProvider {
 public:
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"wall", "nanoseconds"}};

  struct ThreadState {
    std::int64_t attach_ns = 0;
    std::int64_t given_ns = 0;  // wall time that polls have returned so far
  };

  explicit WallTimeProvider(const SamplingOptions& options)
      : period_ns_(*options.wall_frequency_hz > 0
                       ? static_cast<std::int64_t>(1e9 / *options.wall_frequency_hz)
                       : 0),
        poll_period_ns_(period_ns_) {}

  [[nodiscard]] bool enabled() const { return period_ns_ > 0; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  void Attach(SampleTarget& /*thread*/, ThreadState& state, RandomSource& /*random*/,
              std::int64_t now_ns) {
    state = ThreadState{.attach_ns = now_ns};
  }

  std::int64_t Detach(SampleTarget& thread, ThreadState& state, std::int64_t now_ns) {
    return Residual(thread, state, thread.credited_weight(), now_ns);
  }

  std::int64_t Residual(SampleTarget& /*thread*/, ThreadState& state, std::int64_t weight_ns,
                        std::int64_t now_ns) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns - state.attach_ns) -
                                     static_cast<std::uint64_t>(weight_ns));
  }

  [[nodiscard]] std::int64_t poll_period_ns() const { return poll_period_ns_; }
  void SetPeriod(std::int64_t period_ns) { poll_period_ns_ = period_ns; }
  void Retime(SampleTarget& /*thread*/, ThreadState& /*state*/, RandomSource& /*random*/) {}

  std::int64_t Poll(SampleTarget& /*thread*/, ThreadState& state, std::int64_t now_ns) {
    const std::int64_t elapsed_ns = now_ns - state.attach_ns - state.given_ns;
    if (elapsed_ns <= 0) return 0;
    state.given_ns += elapsed_ns;
    return elapsed_ns;
  }

 private:
  std::int64_t period_ns_;
  std::int64_t poll_period_ns_;
};
static_assert(ClockedProvider<WallTimeProvider> && PolledProvider<WallTimeProvider> &&
              RatedProvider<WallTimeProvider>);

}  // namespace strobe
