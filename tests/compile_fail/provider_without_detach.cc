// refused: provider.Detach(thread, state, number)
#include "strobe/provider/sample_provider.h"

struct MyProvider {
  static constexpr std::array<strobe::ValueType, 1> kValueTypes{{{"faults", "count"}}};
  struct ThreadState {};
  explicit MyProvider(const strobe::SamplingOptions&) {}
  bool enabled() const { return true; }
  std::int64_t period_ns() const { return 0; }
  void Attach(strobe::SampleTarget&, ThreadState&, strobe::RandomSource&, std::int64_t) {}
#ifdef REFUSED
  void Detach(strobe::SampleTarget&, ThreadState&, std::int64_t) {
  }  // Without a residual nothing is conserved.
#else
  std::int64_t Detach(strobe::SampleTarget&, ThreadState&, std::int64_t) { return 0; }
#endif
  std::int64_t poll_period_ns() const { return 0; }
  std::int64_t Poll(strobe::SampleTarget&, ThreadState&, std::int64_t) { return 0; }
};
static_assert(strobe::SampleProvider<MyProvider>);
