// OffCpuTimeProvider: where each thread waits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "strobe/provider/sample_provider.h"
#include "strobe/provider/wall_time_provider.h"

namespace strobe {

// A thread's off-CPU time is its wall time minus its CPU time, by the clocks. Wall sampling enables
// it. The stacks that wall polls find the thread waiting at share it; a stack that the thread runs
// at has none of it. The time in which a thread could run and has no CPU is part of it, too.
class OffCpuTimeProvider {
 public:
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"off_cpu", "nanoseconds"}};
  using WaitsOf = WallTimeProvider;

  struct ThreadState {
    std::int64_t attach_ns = 0;
    std::int64_t off_cpu_ns = 0;  // since the attachment, as last read
  };

  explicit OffCpuTimeProvider(const SamplingOptions& options)
      : period_ns_(WallTimeProvider(options).period_ns()) {}

  [[nodiscard]] bool enabled() const { return period_ns_ > 0; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  void Attach(SampleTarget& /*thread*/, ThreadState& state, RandomSource& /*random*/,
              std::int64_t now_ns) {
    state = ThreadState{.attach_ns = now_ns};
  }

  std::optional<std::int64_t> Detach(SampleTarget& thread, ThreadState& state,
                                     std::int64_t now_ns) {
    return Residual(thread, state, thread.credited_weight(), now_ns);
  }

  // The two clocks may differ by a little, so the difference of a thread that only runs may fall.
  // The off-CPU time does not fall.
  std::optional<std::int64_t> Residual(SampleTarget& thread, ThreadState& state,
                                       std::int64_t weight_ns, std::int64_t now_ns) const {
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    if (thread.attach_cpu_ns() < 0 || cpu_ns < thread.attach_cpu_ns()) return std::nullopt;
    const std::int64_t wall_ns = now_ns - state.attach_ns;
    state.off_cpu_ns = std::max(state.off_cpu_ns, wall_ns - (cpu_ns - thread.attach_cpu_ns()));
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(state.off_cpu_ns) -
                                     static_cast<std::uint64_t>(weight_ns));
  }

 private:
  std::int64_t period_ns_;
};
static_assert(WaitProvider<OffCpuTimeProvider>);

}  // namespace strobe
