#include "strobe/testing/fakes/manual_clock.h"

#include "gtest/gtest.h"
#include "strobe/testing/clock_conformance.h"

namespace strobe::testing {
namespace {

TEST(ManualClock, TimePassesOnlyWhenTold) {
  ManualClock::Reset();
  const ManualClock clock;
  const std::int64_t begin_ns = clock.MonotonicNs();
  EXPECT_EQ(clock.MonotonicNs(), begin_ns);
  ManualClock::Advance(5);
  EXPECT_EQ(clock.MonotonicNs(), begin_ns + 5);
  EXPECT_EQ(ManualClock().MonotonicNs(), begin_ns + 5) << "every clock shows the same time";
}

TEST(ManualClock, SettingTheTimeOfDayLeavesTheMonotonicTimeAlone) {
  ManualClock::Reset();
  const ManualClock clock;
  const std::int64_t begin_ns = clock.MonotonicNs();
  ManualClock::SetUnixTimeNs(42);
  EXPECT_EQ(clock.UnixTimeNs(), 42);
  ManualClock::Advance(5);
  EXPECT_EQ(clock.UnixTimeNs(), 47);
  EXPECT_EQ(clock.MonotonicNs(), begin_ns + 5);
  ManualClock::Reset();
  EXPECT_EQ(clock.MonotonicNs(), begin_ns);
}

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Manual, ClockConformance, ManualClock);

}  // namespace strobe::testing
