#include "strobe/clock/clock.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

// A clock of the user's own: any class with the two functions.
struct SteppingClock {
  std::int64_t MonotonicNs() const { return ++now_ns; }
  std::int64_t UnixTimeNs() const { return 0; }
  mutable std::int64_t now_ns = 0;
};
static_assert(Clock<SteppingClock>);

struct SecondsClock : SteppingClock {
  double MonotonicNs() const { return 0.5; }
};
static_assert(!Clock<SecondsClock>, "nanoseconds are whole numbers");

template <Clock C>
std::int64_t ElapsedNs(const C& clock, int reads) {
  const std::int64_t begin_ns = clock.MonotonicNs();
  for (int i = 1; i < reads; ++i) static_cast<void>(clock.MonotonicNs());
  return clock.MonotonicNs() - begin_ns;
}

TEST(Clock, CodeThatAsksForAClockTakesAnyModel) { EXPECT_EQ(ElapsedNs(SteppingClock(), 10), 10); }

}  // namespace
}  // namespace strobe
