#include "strobe/testing/clock_conformance.h"

#include <atomic>

namespace strobe::testing {

// The smallest clock that keeps the contract: one tick a reading.
struct CountingClock {
  std::int64_t MonotonicNs() const { return ++ticks; }
  std::int64_t UnixTimeNs() const { return 0; }
  static inline std::atomic<std::int64_t> ticks{0};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Counting, ClockConformance, CountingClock);

}  // namespace strobe::testing
