#include "strobe/runtime/polls/thread_poller.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../session_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::SumByThread;
using testing::SumOfPseudo;

// Polled by a session, as by its collector.
class ThreadPollerTest : public SessionTest {};

TEST_F(ThreadPollerTest, AThreadThatWaitsIsInterruptedOnceAndItsStackGrows) {
  Thread* const thread = Register(1, "waiter");
  Begin({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
  Run(thread, 5);
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

TEST_F(ThreadPollerTest, TimersHaveTheShortestPeriodThatARecordingAsksFor) {
  Register(1, "early");
  Begin({.cpu_frequency_hz = 100, .trigger = SampleTrigger::kTimers});
  const auto expect_period = [](std::uint64_t id, std::int64_t period_ns) {
    const std::int64_t actual_ns =
        ManualPlatform::With([&](auto& state) { return state.timers.at(id).period_ns; });
    EXPECT_NEAR(static_cast<double>(actual_ns), static_cast<double>(period_ns),
                CpuTimeProvider::kDither * static_cast<double>(period_ns) + 1);
  };
  const RecordingColumns columns = session_->columns();
  expect_period(1, 10 * kMs);
  const std::size_t first = *session_->BeginRecording(columns, kMs);
  expect_period(1, kMs);
  const std::size_t second = *session_->BeginRecording(columns, 5 * kMs);
  const std::size_t slow = *session_->BeginRecording(columns, 50 * kMs);
  expect_period(1, kMs);
  session_->EndRecording(first);
  expect_period(1, 5 * kMs);
  Register(2, "late");
  expect_period(2, 5 * kMs);
  session_->EndRecording(second);
  for (const std::uint64_t id : {1, 2}) expect_period(id, 10 * kMs);
  session_->EndRecording(slow);
}

TEST_F(ThreadPollerTest, PollsHaveTheRateThatARecordingAsksFor) {
  Register(1, "waiter");
  Begin({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
  const auto polls_per_second = [&] {
    constexpr std::int64_t kSeconds = 100;
    int polls = 0;
    for (const std::int64_t end_ns = Now() + kSeconds * 1000 * kMs; Now() < end_ns; ++polls)
      ManualClock::Advance(std::max<std::int64_t>(session_->Poll({}, Now()) - Now(), 1));
    return static_cast<double>(polls) / kSeconds;
  };
  // Five standard deviations.
  EXPECT_NEAR(polls_per_second(), 10, 1.6);
  const std::size_t place = *session_->BeginRecording(session_->columns(), kMs * 5);
  EXPECT_NEAR(polls_per_second(), 200, 7.1);
  session_->EndRecording(place);
  EXPECT_NEAR(polls_per_second(), 10, 1.6);
}

}  // namespace
}  // namespace strobe::internal
