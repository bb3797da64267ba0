// refused: provider.Poll(thread, state, number)
#include "strobe/provider/sample_provider.h"

struct MyProvider {
  static constexpr std::array<strobe::ValueType, 1> kValueTypes{{{"faults", "count"}}};
  struct ThreadState {};
  explicit MyProvider(const strobe::SamplingOptions&) {}
  bool enabled() const { return true; }
  std::int64_t poll_period_ns() const { return 1; }
#ifndef REFUSED  // Without Poll the period is of no use.
  std::int64_t Poll(strobe::SampleTarget&, ThreadState&, std::int64_t) { return 0; }
#endif
};
static_assert(strobe::SampleProvider<MyProvider>);
