#include "strobe/runtime/thread_poller.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session_fixture.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::SumByThread;
using testing::SumOfPseudo;

// Polled by a session, as by its collector.
class ThreadPollerTest : public SessionTest {};

TEST_F(ThreadPollerTest, AThreadThatWaitsIsInterruptedOnceAndItsStackGrows) {
  Slot* const slot = Register(1, "waiter");
  Begin({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
  Run(slot, 5);
  int interruptions = 0;
  for (int i = 0; i < 50; ++i) {
    ManualClock::Advance(200 * kMs);
    session_->Poll({}, Now());
    interruptions += ManualPlatform::DeliverAll(0x400000);
  }
  EXPECT_EQ(interruptions, 1);
  const Profile profile = Finish();
  EXPECT_THAT(profile.value_types,
              ElementsAre(ValueType{"wall", "nanoseconds"}, ValueType{"off_cpu", "nanoseconds"}))
      << "the CPU provider is off";
  EXPECT_EQ(SumByThread(profile, 0)["waiter"], 50 * 200 * kMs + 5);
  EXPECT_LE(SumOfPseudo(profile, PseudoFrame::kResidual, 0), 200 * kMs);
}

TEST_F(ThreadPollerTest, WithTimersNoThreadIsPolled) {
  Register(1, "thread");
  Begin({.trigger = SampleTrigger::kTimers});
  EXPECT_EQ(session_->Poll({}, Now()), INT64_MAX);
}

}  // namespace
}  // namespace strobe::internal
