#include "strobe/testing/provider_conformance.h"

namespace strobe::testing {

// The smallest provider with an account: it samples CPU time whenever the collector polls.
struct PollingProvider {
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"polled", "nanoseconds"}};
  struct ThreadState {
    std::int64_t asked_ns = 0;
  };
  explicit PollingProvider(const SamplingOptions& options)
      : is_enabled(*options.cpu_frequency_hz > 0) {}
  bool enabled() const { return is_enabled; }
  std::int64_t period_ns() const { return 0; }
  void Attach(SampleTarget& thread, ThreadState& state, RandomSource&, std::int64_t) {
    state.asked_ns = thread.attach_cpu_ns();
  }
  std::int64_t Detach(SampleTarget& thread, ThreadState&, std::int64_t) {
    return thread.CpuTimeNs() - thread.attach_cpu_ns() - thread.credited_weight();
  }
  std::int64_t poll_period_ns() const { return 1'000'000; }
  std::int64_t Poll(SampleTarget& thread, ThreadState& state, std::int64_t) {
    const std::int64_t used_ns = thread.CpuTimeNs() - state.asked_ns;
    state.asked_ns += used_ns;
    return used_ns;
  }
  bool is_enabled;
};

struct PollingHarness {
  using Provider = PollingProvider;
  static SamplingOptions Enabled() { return {}; }
  static SamplingOptions Disabled() { return {.cpu_frequency_hz = 0}; }
  static constexpr bool kHasResidual = true;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Polling, ProviderConformance, PollingHarness);

}  // namespace strobe::testing
