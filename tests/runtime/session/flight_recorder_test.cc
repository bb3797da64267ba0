#include "strobe/runtime/session/flight_recorder.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../session_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::SumByThread;

constexpr std::int64_t kFlightSecondNs = 1'000'000'000;

class FlightRecorderTest : public SessionTest {
 protected:
  void BeginKeeping(double last_s) {
    options_.keep.last_s = last_s;
    Begin();
    flight_.emplace(options_, *session_, counters_, maker_);
    flight_->Begin(Now());
  }
  std::optional<std::string> Drain() {
    session_->Drain();
    return flight_->AfterDrain(Now());
  }
  // The profile of the last `last_ns`.
  Profile Last(std::int64_t last_ns) {
    session_->Drain();
    RecordingCall call;
    call.columns = session_->columns();
    call.last_ns = last_ns;
    flight_->Take(call, Now());
    EXPECT_TRUE(call.status.ok()) << call.status;
    strobe::FillProfile(std::move(call.samples), call.profile);
    return std::move(call.profile);
  }

  ProfileMaker<SessionTraits> maker_{counters_, [this] {
                                       Stats stats;
                                       counters_.AddTo(stats);
                                       return stats;
                                     }};
  std::optional<FlightRecorder<SessionTraits>> flight_;
};

TEST_F(FlightRecorderTest, IsOffByDefault) {
  Begin();
  const FlightRecorder<SessionTraits> flight(options_, *session_, counters_, maker_);
  EXPECT_FALSE(flight.is_on());
}

// Each second the thread does something else, for another time. The window has the last seconds,
// each with its clock's time to the nanosecond, and nothing of the others.
TEST_F(FlightRecorderTest, AWindowIsWhatTheClocksSayOfItsTime) {
  BeginKeeping(30);
  Thread* const busy = Register(1, "busy");
  Thread* const rare = Register(2, "rare");
  ASSERT_EQ(Drain(), std::nullopt);
  for (int second = 0; second < 100; ++second) {
    const std::int64_t begin_ns = Now();
    for (int i = 0; i < 20; ++i) Run(busy, 20 * kMs + second, 0x400000 + second * 16);
    Run(rare, 7 * kMs + second);
    ManualClock::Advance(begin_ns + kFlightSecondNs - Now());
    Drain();
  }
  for (const int seconds : {1, 5, 29}) {
    const Profile profile = Last(seconds * kFlightSecondNs);
    EXPECT_EQ(profile.duration_ns, seconds * kFlightSecondNs);
    EXPECT_EQ(profile.time_ns, ManualClock().UnixTimeNs() - seconds * kFlightSecondNs);
    Sums expected{{"busy", 0}, {"rare", 0}};
    for (int second = 100 - seconds; second < 100; ++second) {
      expected["busy"] += 20 * (20 * kMs + second);
      expected["rare"] += 7 * kMs + second;
    }
    EXPECT_EQ(SumByThread(profile, kCpu), expected);
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const Frame& leaf = profile.frames[profile.stacks[profile.samples[i].stack].frame];
      if (leaf.is_pseudo() || profile.Labels(i).Text(kThreadNameLabel) != "busy") continue;
      // A sample's signal may come in the second after its expiry.
      EXPECT_GE(leaf.address, 0x400000u + (99u - static_cast<unsigned>(seconds)) * 16);
    }
    EXPECT_EQ(profile.window, WindowText(seconds * kFlightSecondNs, seconds * kFlightSecondNs, ""));
  }
}

// A window between two moments is what a recording of the same time has.
TEST_F(FlightRecorderTest, AWindowIsEqualToARecordingOfTheSameTime) {
  BeginKeeping(60);
  Thread* const thread = Register(1, "thread");
  for (int i = 0; i < 100; ++i) Run(thread, 7 * kMs, 0x500000);
  Drain();
  ManualClock::Advance(3 * kFlightSecondNs);
  Drain();  // ends a slice
  const std::optional<std::size_t> place = session_->BeginRecording(session_->columns());
  ASSERT_TRUE(place.has_value());
  const std::int64_t begin_ns = Now();
  for (int i = 0; i < 5000; ++i) {
    Run(thread, 3 * kMs, 0x400000 + static_cast<Address>(i % 7) * 16);
    if (i % 20 == 0) Drain();
  }
  const std::int64_t lasted_ns = Now() - begin_ns;
  const Profile window = Last(lasted_ns);
  std::optional<RecordedPeriod> recorded = session_->TakeRecording(*place);
  ASSERT_TRUE(recorded.has_value());
  EXPECT_EQ(window.duration_ns, recorded->duration_ns);
  EXPECT_EQ(window.time_ns, recorded->time_ns);
  const Profile recording = ProfileOf(*std::move(recorded), session_->columns());
  session_->EndRecording(*place);
  EXPECT_EQ(SumByThread(window, kCpu), SumByThread(recording, kCpu));
  EXPECT_EQ(SumByThread(window, kSamples), SumByThread(recording, kSamples));
  EXPECT_EQ(window.samples.size(), recording.samples.size());
  EXPECT_EQ(window.values, recording.values);
}

// The thread is under way in a span that is over its threshold by the system's clock.
TEST_F(FlightRecorderTest, ASpanUnderWayIsSlowInAWindowAndAMomentOnceItHasEnded) {
  options_.keep.slow_spans = true;
  BeginKeeping(10);
  constexpr SpanNumber kSpan = 77'777;
  Thread* const thread = Register(1, "thread");
  ASSERT_EQ(Drain(), std::nullopt);
  thread->channel->context.BeginSpan(kSpan, /*slow_at_ns=*/0);
  const std::uint64_t ended = ProcessSlowSpans().added();
  for (int second = 0; second < 5; ++second) {
    for (int i = 0; i < 50; ++i) Run(thread, 20 * kMs);
    EXPECT_EQ(Drain(), std::nullopt);
    const Profile profile = Last(10 * kFlightSecondNs);
    std::size_t slow = 0;
    for (std::size_t i = 0; i < profile.samples.size(); ++i)
      slow += profile.Labels(i).Text(kSlowLabel) == "true" ? 1 : 0;
    EXPECT_GT(slow, 0u);
  }
  EXPECT_EQ(ProcessSlowSpans().added(), ended);
  thread->channel->context.EndSpan();
  NoteSlowSpan(kSpan);
  for (int drain = 0; drain < 2; ++drain)
    EXPECT_EQ(Drain(), "trigger: slow spans: 1") << "until there is a dump";
  flight_->EndMoment(Now());
  EXPECT_EQ(Drain(), std::nullopt);
}

TEST_F(FlightRecorderTest, MomentsWithoutADumpOfTheirOwnAreCountedForAllSessions) {
  counters_.dumps_skipped = 5;  // of a session before
  BeginKeeping(10);
  Drain();
  for (int i = 0; i < 3; ++i) {
    ReachedLimits::Note("queue depth", 120, 100);
    if (Drain()) flight_->EndMoment(Now());
    ManualClock::Advance(kFlightSecondNs);
  }
  EXPECT_EQ(counters_.dumps_skipped, 5u + 2u) << "within a minute of the first";
}

TEST_F(FlightRecorderTest, ATriggerIsAskedAfterEachDrainAndTheWindowHasItsReason) {
  options_.keep.cpu_percent = 50;
  options_.keep.cpu_s = 2;
  BeginKeeping(10);
  std::int64_t cpu_ns = 0;
  std::optional<std::string> reason;
  int drains = 0;
  for (; drains < 1000 && !reason; ++drains) {
    ManualClock::Advance(100 * kMs);
    counters_.process_cpu_ns = cpu_ns += (drains < 50 ? 10 : 90) * kMs;
    reason = Drain();
  }
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(*reason, "trigger: at least 50 % of a CPU for 2.0 s");
  EXPECT_LE(drains, 50 + 31) << "two seconds, and what the first stretch has of the rest";
  const std::unique_ptr<ExportJob> job = flight_->TakeJob(*reason, Now());
  ASSERT_NE(job, nullptr);
  EXPECT_THAT(job->profile.window, ::testing::EndsWith("; " + *reason));
}

TEST_F(FlightRecorderTest, MemoryIsLookedAtIfATriggerNeedsIt) {
  options_.keep.memory_growth_bytes = 1 << 20;
  BeginKeeping(10);
  ManualPlatform::With([](ManualPlatform::State& state) { return state.memory_bytes = 5 << 20; });
  EXPECT_EQ(Drain(), std::nullopt);
  ManualPlatform::With([](ManualPlatform::State& state) { return state.memory_bytes = 7 << 20; });
  EXPECT_EQ(Drain(), "trigger: resident memory grew by 2.0 MiB to 7.0 MiB");
}

}  // namespace
}  // namespace strobe::internal
