#include "strobe/runtime/session/running_session.h"

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::kCpu;
using testing::kMs;
using testing::kSamples;
using testing::ManualClock;
using testing::ManualExporter;
using testing::ManualPlatform;
using testing::ManualTraits;
using testing::SumByThread;

// A session with its real threads, whose time the test moves. The test is the kernel and a thread
// of the program.
template <class Traits>
class RunningSessionOf : public ::testing::Test {
 protected:
  using Thread = RegisteredThread<Traits>;
  using Recorded = std::future<absl::StatusOr<Profile>>;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ManualExporter::Take();
    ManualExporter::FailNext(0);
    ASSERT_TRUE(registry_.Open().ok());
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    thread_->next = RegistrationLinks();
    RegistrationLinks() = thread_;
  }
  void TearDown() override {
    static_cast<void>(End());
    RegistrationLinks() = thread_->next;
    registry_.Unregister(thread_);
  }

  void Begin() {
    running_ = std::make_unique<RunningSession<Traits>>(options_, Parts<Traits>{}, registry_, code_,
                                                        counters_, signal_, maker_);
    ASSERT_TRUE(running_->Begin().ok());
    running_->session().Begin();
    // The collector has begun to wait: from here on its time is the test's.
    ASSERT_TRUE(running_->Flush().ok());
    ManualExporter::Take();
  }
  absl::Status End() {
    if (running_ == nullptr) return absl::OkStatus();
    absl::Status status = running_->End();
    running_.reset();
    return status;
  }
  // Captures so many samples of the thread, whose timer has expired in time.
  void Sample(int count, Address pc = 0x400000) {
    const auto timer = ManualPlatform::With([](auto& state) { return state.timers.at(1); });
    for (int i = 0; i < count; ++i) {
      ManualPlatform::RunFor(1, timer.period_ns);
      ASSERT_TRUE(ManualPlatform::Deliver(timer.payload, 1, pc));
    }
  }
  // Returns when the recording has begun.
  Recorded Record(RecordingOptions options) {
    // The first ends the period with all that was sampled; the second says what is left then. More
    // than that is the recording.
    EXPECT_TRUE(running_->Flush().ok());
    EXPECT_TRUE(running_->Flush().ok());
    const std::size_t before = Bytes();
    Recorded recorded = std::async(std::launch::async, [this, options = std::move(options)] {
      return running_->Record(options);
    });
    while (Bytes() <= before) {
      std::this_thread::yield();
      EXPECT_TRUE(running_->Flush().ok());
      if (recorded.wait_for(std::chrono::seconds(0)) == std::future_status::ready) break;
    }
    ManualExporter::Take();
    return recorded;
  }
  std::size_t Bytes() { return counters_.aggregator_bytes.load(std::memory_order_relaxed); }

  ProfilerOptions options_{.sampling = {.wall_frequency_hz = 10, .trigger = SampleTrigger::kTimers},
                           .collector = {.drain_period_ms = 10},
                           .exporter = {.period_s = 3600}};
  ThreadRegistry<Traits> registry_{10, 32 * 1024};
  CodeRegistry generated_;
  CollectorCounters counters_;
  SignalInUse signal_;
  LoadedCode<Traits> code_{generated_, counters_.code};
  ProfileMaker<Traits> maker_{counters_, [this] {
                                Stats stats;
                                counters_.AddTo(stats);
                                return stats;
                              }};
  Thread* thread_ = nullptr;
  std::unique_ptr<RunningSession<Traits>> running_;
};
using RunningSessionTest = RunningSessionOf<ManualTraits>;

TEST_F(RunningSessionTest, EndsAndTakesWhatHasBeenSampled) {
  Begin();
  Sample(3);
  EXPECT_TRUE(End().ok());
  const std::vector<Profile> kept = ManualExporter::Take();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(SumByThread(kept[0], kSamples)["thread"], 3);
}

TEST_F(RunningSessionTest, RefusesToBeginWithoutAProvider) {
  options_.sampling = {.cpu_frequency_hz = 0};
  RunningSession<ManualTraits> running(options_, {}, registry_, code_, counters_, signal_, maker_);
  EXPECT_TRUE(absl::IsInvalidArgument(running.Begin()));
}

TEST_F(RunningSessionTest, ARecordingHasWhatIsSampledFromItsBeginToItsEnd) {
  Begin();
  Sample(3, 0x400010);
  Recorded recorded =
      Record({.duration = std::chrono::milliseconds(500), .value_types = {"samples", "wall"}});
  Sample(5, 0x400020);
  EXPECT_TRUE(running_->Flush().ok());
  Sample(7, 0x400030);
  ManualClock::Advance(500 * kMs);
  const absl::StatusOr<Profile> profile = recorded.get();
  ASSERT_TRUE(profile.ok()) << profile.status();
  Sample(11, 0x400040);
  EXPECT_EQ(testing::CheckProfile(*profile), "");
  EXPECT_THAT(profile->value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"wall", "nanoseconds"}));
  EXPECT_EQ(profile->default_value_type, 0u);
  EXPECT_EQ(profile->period_type, (ValueType{"cpu", "nanoseconds"}));
  EXPECT_EQ(profile->period, 10 * kMs);
  EXPECT_EQ(SumByThread(*profile, kSamples)["thread"], 12);
  EXPECT_EQ(profile->duration_ns, 500 * kMs);
  EXPECT_EQ(profile->stats.samples, 12u);
  EXPECT_EQ(profile->sequence, 0u);
  EXPECT_TRUE(End().ok());
  std::int64_t exported = 0;
  for (const Profile& period : ManualExporter::Take()) {
    EXPECT_EQ(period.value_types.size(), 4u);
    exported += SumByThread(period, kSamples)["thread"];
  }
  EXPECT_EQ(exported, 5 + 7 + 11) << "since the recording began, of which it took nothing";
}

TEST_F(RunningSessionTest, AnEndCutsARecordingShort) {
  Begin();
  Recorded recorded = Record({.duration = kMaxRecordingDuration});
  Sample(5);
  ManualClock::Advance(30 * kMs);
  EXPECT_TRUE(running_->End().ok());
  const absl::StatusOr<Profile> profile = recorded.get();
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(SumByThread(*profile, kSamples)["thread"], 5);
  EXPECT_EQ(profile->duration_ns, 30 * kMs);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      running_->Record({.duration = std::chrono::milliseconds(1)}).status()));
  running_.reset();
}

TEST_F(RunningSessionTest, AColumnThatIsNotEnabledIsNamed) {
  Begin();
  const absl::Status status =
      running_->Record({.duration = std::chrono::milliseconds(1), .value_types = {"heap"}})
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("\"heap\""));
}

// A recording adds up to the clock, as the periods of the export do.
TEST_F(RunningSessionTest, ARecordingHasWhatTheClockSaysOfItsTime) {
  options_.sampling = {.trigger = SampleTrigger::kTimers};
  Begin();
  const auto timer = ManualPlatform::With([](auto& state) { return state.timers.at(1); });
  ManualPlatform::RunFor(1, timer.first_ns);  // stands for a whole period
  ASSERT_TRUE(ManualPlatform::Deliver(timer.payload, 1, 0x400000));
  Recorded recorded = Record({.duration = std::chrono::milliseconds(10)});
  ManualPlatform::RunFor(1, timer.period_ns);
  ManualClock::Advance(10 * kMs);
  const absl::StatusOr<Profile> profile = recorded.get();
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(SumByThread(*profile, kCpu)["thread"], timer.period_ns)
      << "the first expiry stood for more than the clock had, but in the period before";
}

// An option asks for windows that no output takes: they are not lost in silence.
TEST_F(RunningSessionTest, WindowsThatNoOutputTakesAreSaidAndCounted) {
  options_.keep = {.last_s = 30, .slow_spans = true};
  Begin();
  EXPECT_THAT(ManualPlatform::With([](auto& state) { return state.lines; }),
              ElementsAre(::testing::HasSubstr("no output of this profiler takes windows")));
  ReachedLimits::Note("queue depth", 120, 100);
  EXPECT_TRUE(running_->Flush().ok());
  EXPECT_EQ(counters_.dumps_failed, 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(running_->DumpLast()));
}

struct WindowExporter : ManualExporter {
  using ManualExporter::ManualExporter;
  static constexpr bool kTakesWindows = true;
};
struct WindowTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, WindowExporter>>;
};
using KeepingSessionTest = RunningSessionOf<WindowTraits>;

TEST_F(KeepingSessionTest, ACallAndATriggerEachWriteAWindow) {
  options_.keep.last_s = 30;
  Begin();
  Sample(3);
  ManualExporter::FailNext(1);
  EXPECT_EQ(running_->DumpLast().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(running_->DumpLast().ok());
  std::vector<Profile> kept = ManualExporter::Take();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(SumByThread(kept[0], kSamples)["thread"], 3);
  EXPECT_THAT(kept[0].window, ::testing::HasSubstr("the last "));
  ReachedLimits::Note("queue depth", 120, 100);
  EXPECT_TRUE(running_->Flush().ok());
  EXPECT_TRUE(running_->Flush().ok()) << "it waits for the window, too";
  kept = ManualExporter::Take();
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_THAT(kept[0].window + kept[1].window, ::testing::HasSubstr("queue depth is 120"));
  Stats stats;
  running_->worker()->AddTo(stats);
  EXPECT_EQ(stats.dumps, 2u);
  EXPECT_EQ(stats.dumps_failed, 1u);
  EXPECT_EQ(counters_.dumps_failed, 0u);
}

}  // namespace
}  // namespace strobe::internal
