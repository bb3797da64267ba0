#include "strobe/profiler.h"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "runtime/manual_traits.h"
#include "strobe/testing/fakes/manual_provider.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ManualClock;
using testing::ManualExporter;
using testing::ManualPlatform;
using ::testing::Not;
using testing::SumByThread;
using TestProfiler = BasicProfiler<testing::ManualTraits>;

constexpr std::int64_t kMs = 1'000'000;

// One variable for a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    testing::SetVariable(name, value);
  }
  ~ScopedVariable() { testing::UnsetVariable(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

// A profiler whose threads are real and whose signals are the test's; the test's own thread is
// thread 1.
class ProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualPlatform::ActAs(1);
    ManualClock::Reset();
    ManualExporter::Take();
    ManualExporter::FailNext(0);
  }
  void TearDown() override { ManualPlatform::ActAs(0); }

  // `count` expiries of the calling thread's timer arrive at once, having taken their time. Returns
  // that time.
  static std::int64_t Sample(int count = 1) {
    const auto timer = ManualPlatform::With([](auto& state) { return state.timers.at(1); });
    ManualPlatform::RunFor(1, count * timer.period_ns);
    EXPECT_TRUE(ManualPlatform::Deliver(timer.payload, count, 0x400000));
    return count * timer.period_ns;
  }

 private:
  const ScopedVariable trigger_{"STROBE_TRIGGER", "timers"};
};

// A provider that a program gives needs no static to hand it its state.
TEST_F(ProfilerTest, AProviderIsGivenByItsValue) {
  struct GivenTraits : testing::ManualTraits {
    using Providers = ProviderList<CpuTimeProvider, testing::ManualProvider>;
  };
  const auto script = std::make_shared<testing::ManualProviderScript>();
  BasicProfiler<GivenTraits> profiler({}, {.providers = {testing::ManualProvider(script)}});
  const auto registration = profiler.RegisterThread("main");
  for (int session = 1; session <= 2; ++session) {
    ASSERT_TRUE(profiler.Start().ok());
    EXPECT_EQ(script->attached, session);
    ASSERT_TRUE(profiler.Stop().ok());
    EXPECT_EQ(script->detached, session);
  }
}

TEST_F(ProfilerTest, StartAndStopKnowTheirTurn) {
  TestProfiler profiler;
  EXPECT_EQ(profiler.Stop().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(profiler.Flush().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_EQ(profiler.Start().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.Stop().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(profiler.Start().ok()) << "a session can follow a session";
}

TEST_F(ProfilerTest, NoThreadIsAtInstantsAfterStop) {
  TestProfiler profiler;
  ManualPlatform::With([](auto& state) { state.refuses_timers = true; });
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  ASSERT_TRUE(profiler.Flush().ok());
  EXPECT_EQ(profiler.stats().threads_at_instants, 1u);
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("refused the CPU timers of 1 threads"));
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().threads_at_instants, 0u);
  EXPECT_EQ(ManualExporter::Take().back().stats.threads_at_instants, 1u)
      << "what was so at the period's end";
}

TEST_F(ProfilerTest, TheDestructorStopsAndExports) {
  {
    TestProfiler profiler;
    ASSERT_TRUE(profiler.Start().ok());
    const Registration registration = profiler.RegisterThread("main");
    Sample();
  }
  const auto profiles = ManualExporter::Take();
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(SumByThread(profiles[0], 0)["main"], 1);
}

TEST_F(ProfilerTest, FlushAndStopExportTheWholeInParts) {
  TestProfiler profiler;
  ASSERT_TRUE(profiler.Start().ok());
  std::optional<Registration> registration = profiler.RegisterThread("main");
  const std::int64_t first_ns = Sample(3);
  ASSERT_TRUE(profiler.Flush().ok());
  const std::int64_t second_ns = Sample(4);
  ManualPlatform::RunFor(1, 1234);
  registration.reset();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto profiles = ManualExporter::Take();
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(SumByThread(profiles[0], 1)["main"], first_ns);
  EXPECT_EQ(SumByThread(profiles[1], 1)["main"], second_ns + 1234);
  EXPECT_EQ(profiles[0].sequence, 0u);
  EXPECT_EQ(profiles[1].sequence, 1u);
  EXPECT_EQ(profiles[0].stats.samples, 1u) << "records, not periods";
  EXPECT_EQ(profiles[1].stats.samples, 1u);
}

TEST_F(ProfilerTest, AProfileSaysWhatItIs) {
  TestProfiler profiler({.sampling = {.cpu_frequency_hz = 200, .wall_frequency_hz = 10}});
  ASSERT_TRUE(profiler.Start().ok());
  ManualClock::Advance(1500 * kMs);
  ASSERT_TRUE(profiler.Stop().ok());
  const Profile profile = ManualExporter::Take().at(0);
  EXPECT_THAT(profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"},
                          ValueType{"wall", "nanoseconds"}, ValueType{"off_cpu", "nanoseconds"}));
  EXPECT_EQ(profile.default_value_type, 1u);
  EXPECT_EQ(profile.period_type, (ValueType{"cpu", "nanoseconds"}));
  EXPECT_EQ(profile.period, 5 * kMs);
  EXPECT_EQ(profile.duration_ns, 1500 * kMs);
  EXPECT_EQ(profile.time_ns + profile.duration_ns, ManualClock().UnixTimeNs());
  EXPECT_EQ(profile.program, ManualPlatform::ProgramName());
  EXPECT_EQ(profile.process_id, ManualPlatform::ProcessId());
  EXPECT_EQ(profile.stats.requested_rate_hz, 200);
}

TEST_F(ProfilerTest, WithoutCpuTheFirstColumnIsWall) {
  TestProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 10}});
  ASSERT_TRUE(profiler.Start().ok());
  ASSERT_TRUE(profiler.Stop().ok());
  const Profile profile = ManualExporter::Take().at(0);
  EXPECT_THAT(profile.value_types,
              ElementsAre(ValueType{"wall", "nanoseconds"}, ValueType{"off_cpu", "nanoseconds"}));
  EXPECT_EQ(profile.default_value_type, 0u);
  EXPECT_EQ(profile.period, 100 * kMs);
  EXPECT_EQ(profile.period_type, (ValueType{"wall", "nanoseconds"}));
}

TEST_F(ProfilerTest, NamesAreCutAndMadeValid) {
  TestProfiler profiler;
  ASSERT_TRUE(profiler.Start().ok());
  {
    const Registration registration = profiler.RegisterThread("a\xFF\n" + std::string(100, 'b'));
    Sample();
  }
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(ManualExporter::Take().at(0).threads.at(0).name, "a? " + std::string(60, 'b'));
}

TEST_F(ProfilerTest, ThreadsMayRegisterBeforeAndAfterStart) {
  TestProfiler profiler;
  const Registration registration = profiler.RegisterThread("before");
  EXPECT_TRUE(registration.status().ok());
  ASSERT_TRUE(profiler.Start().ok());
  Sample();
  std::thread([&] {
    ManualPlatform::ActAs(2);
    const Registration other = profiler.RegisterThread("after");
    ManualPlatform::RunFor(2, 77);
  }).join();
  EXPECT_EQ(profiler.stats().threads_registered, 1u);
  ASSERT_TRUE(profiler.Stop().ok());
  auto cpu_ns = SumByThread(ManualExporter::Take().at(0), 1);
  EXPECT_EQ(cpu_ns["before"], ManualPlatform::ThreadCpuTimeNs(1));
  EXPECT_EQ(cpu_ns["after"], 77);
}

TEST_F(ProfilerTest, AFailedExportIsReportedAndRetriedWithTheSameProfile) {
  TestProfiler profiler;
  ASSERT_TRUE(profiler.Start().ok());
  const Registration registration = profiler.RegisterThread("main");
  Sample();
  ManualExporter::FailNext(1);
  EXPECT_EQ(profiler.Flush().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(profiler.stats().last_export_error, "the exporter was told to fail");
  EXPECT_THAT(profiler.Diagnose(),
              HasSubstr("The last export failed: the exporter was told to fail"));
  Sample();
  EXPECT_TRUE(profiler.Flush().ok());
  const auto profiles = ManualExporter::Take();
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[0].sequence, 0u);
  EXPECT_EQ(profiles[1].sequence, 1u);
  EXPECT_EQ(SumByThread(profiles[0], 0)["main"], 1);
  EXPECT_EQ(SumByThread(profiles[1], 0)["main"], 1);
  const Stats stats = profiler.stats();
  EXPECT_EQ(stats.exports, 2u);
  EXPECT_EQ(stats.exports_failed, 1u);
  EXPECT_EQ(stats.last_export_error, "");
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().exports, 3u) << "an ended session's exports still count";
}

// Fails until it is told not to.
struct FailingExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    if (is_failing->load()) return absl::UnavailableError("503");
    return std::string("there");
  }
  std::atomic<bool>* is_failing;
};
struct TwoOutputsTraits : testing::ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, ManualExporter>,
                             Output<testing::ArchetypeEncoder, FailingExporter>>;
};

TEST_F(ProfilerTest, AnOutputThatFailsKeepsNoPeriodFromTheOther) {
  std::atomic<bool> is_failing{true};
  BasicProfiler<TwoOutputsTraits> profiler(
      {}, {.outputs = {{}, {.exporter = FailingExporter{&is_failing}}}});
  EXPECT_EQ(profiler.stats().outputs.size(), 2u);
  ASSERT_TRUE(profiler.Start().ok());
  const Registration registration = profiler.RegisterThread("main");
  for (int period = 1; period <= 3; ++period) {
    const std::int64_t sampled_ns = Sample(period);
    EXPECT_EQ(profiler.Flush().message(), "output 2 (.none): 503");
    const auto profiles = ManualExporter::Take();
    ASSERT_EQ(profiles.size(), 1u) << "the period has ended for it";
    EXPECT_EQ(SumByThread(profiles[0], 1)["main"], sampled_ns);
  }
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("The last export to output 2 (.none) failed: 503"));
  is_failing = false;
  EXPECT_TRUE(profiler.Flush().ok());
  const Stats stats = profiler.stats();
  EXPECT_EQ(stats.outputs[0].exports, 4u);
  EXPECT_EQ(stats.outputs[1].exports, 4u) << "all that waited";
  EXPECT_EQ(stats.exports_dropped, 0u);
  EXPECT_EQ(stats.periods_extended, 0u);
  EXPECT_TRUE(profiler.Stop().ok());
}

TEST_F(ProfilerTest, AForksChildHasThePartsThatWereGiven) {
  std::atomic<bool> is_failing{false};
  BasicProfiler<TwoOutputsTraits> profiler(
      {}, {.outputs = {{}, {.exporter = FailingExporter{&is_failing}}}});
  ManualPlatform::Fork();
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().outputs[1].last_export_path, "there");
}

TEST_F(ProfilerTest, StopReportsAFailedExport) {
  TestProfiler profiler;
  ASSERT_TRUE(profiler.Start().ok());
  ManualExporter::FailNext(1);
  EXPECT_EQ(profiler.Stop().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(profiler.stats().exports_failed, 1u);
}

TEST_F(ProfilerTest, OptionsAreValidatedByName) {
  for (const auto& [options, field] :
       {std::pair{ProfilerOptions{.sampling = {.cpu_frequency_hz = -1}},
                  "sampling.cpu_frequency_hz"},
        std::pair{ProfilerOptions{.sampling = {.max_frames = 0}}, "sampling.max_frames"},
        std::pair{ProfilerOptions{.threads = {.ring_bytes = 5000}}, "threads.ring_bytes"},
        std::pair{ProfilerOptions{.exporter = {.directory = ""}}, "exporter.directory"}}) {
    TestProfiler profiler(options);
    const absl::Status status = profiler.Start();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
    EXPECT_EQ(profiler.RegisterThread("main").status(), status);
    EXPECT_THAT(profiler.Diagnose(),
                HasSubstr("The last Start failed: " + std::string(status.message())));
  }
}

TEST_F(ProfilerTest, WithoutAnyProviderThereIsNothingToStart) {
  TestProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  const absl::Status status = profiler.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no provider is enabled"));
}

TEST_F(ProfilerTest, SwitchedOffItDoesNothingAndSaysSo) {
  TestProfiler profiler({.enabled = false});
  EXPECT_EQ(profiler.Start().code(), absl::StatusCode::kFailedPrecondition);
  const Registration registration = profiler.RegisterThread("main");
  EXPECT_EQ(registration.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("switched off"));
  EXPECT_THAT(ManualExporter::Take(), IsEmpty());
}

TEST_F(ProfilerTest, TheKillSwitchBeatsCode) {
  const ScopedVariable variable("STROBE_ENABLED", "0");
  TestProfiler profiler({.enabled = true});
  EXPECT_FALSE(*profiler.options().enabled);
  EXPECT_EQ(profiler.Start().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ProfilerTest, CodeBeatsTheEnvironmentWhichBeatsTheDefault) {
  const ScopedVariable cpu("STROBE_CPU_FREQUENCY_HZ", "7");
  const ScopedVariable wall("STROBE_WALL_FREQUENCY_HZ", "8");
  const TestProfiler profiler({.sampling = {.wall_frequency_hz = 9}});
  EXPECT_EQ(*profiler.options().sampling.cpu_frequency_hz, 7);
  EXPECT_EQ(*profiler.options().sampling.wall_frequency_hz, 9);
  EXPECT_EQ(*profiler.options().sampling.max_frames, 512);
}

TEST_F(ProfilerTest, AVariableThatMakesNoSenseIsOneLineAndTheDefaultStays) {
  const ScopedVariable variable("STROBE_MAX_FRAMES", "many");
  TestProfiler profiler;
  EXPECT_EQ(*profiler.options().sampling.max_frames, 512);
  const auto lines = ManualPlatform::With([](auto& state) { return state.lines; });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("STROBE_MAX_FRAMES=\"many\""));
  EXPECT_THAT(lines[0], HasSubstr("an integer from 1 to 2048"));
  EXPECT_TRUE(profiler.Start().ok());
}

TEST_F(ProfilerTest, ThreadsThatTheSystemRefusesAreAClearErrorAndTheNextStartMayWork) {
  for (const auto& [threads, who] : {std::pair{0, "exporter"}, std::pair{1, "collector"}}) {
    ManualPlatform::With([&, threads = threads](auto& state) { state.threads_left = threads; });
    TestProfiler profiler;
    const Registration registration = profiler.RegisterThread("main");
    const absl::Status status = profiler.Start();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr(who));
    EXPECT_THAT(std::string(status.message()), HasSubstr("Resource temporarily unavailable"));
    EXPECT_EQ(profiler.Stop().code(), absl::StatusCode::kFailedPrecondition);
    ManualPlatform::With([](auto& state) { state.threads_left = 10; });
    ASSERT_TRUE(profiler.Start().ok());
    Sample();
    EXPECT_TRUE(profiler.Stop().ok());
    EXPECT_EQ(SumByThread(ManualExporter::Take().back(), 0)["main"], 1);
  }
}

TEST_F(ProfilerTest, DiagnoseFollowsTheProfilersLife) {
  TestProfiler profiler;
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("never started"));
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("No thread is registered"));
  ASSERT_TRUE(profiler.Start().ok());
  const Registration registration = profiler.RegisterThread("main");
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("there is no sample yet"));
  Sample();
  ASSERT_TRUE(profiler.Flush().ok());
  EXPECT_THAT(profiler.Diagnose(),
              ::testing::StartsWith("All is well: 1 threads, 1 samples, 1 exports, by signal 1."));
  ManualPlatform::With([](auto& state) { state.handler = HandlerState::kReplaced; });
  EXPECT_THAT(profiler.Diagnose(), Not(HasSubstr("replaced")))
      << "as long as samples come, the new handler calls ours";
  ManualPlatform::With([](auto& state) { state.handler = HandlerState::kOurs; });
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("is stopped"));
}

TEST_F(ProfilerTest, TwoProfilersKeepTheirOwnAccounts) {
  TestProfiler one;
  TestProfiler other({.sampling = {.cpu_frequency_hz = 50}});
  ASSERT_TRUE(one.Start().ok());
  const Registration first = one.RegisterThread("thread");
  const std::int64_t before_ns = Sample(5);
  ASSERT_TRUE(other.Start().ok());
  const Registration second = other.RegisterThread("thread");
  const std::int64_t shared_ns = Sample(2);  // the timer that was started last
  ASSERT_TRUE(one.Stop().ok());
  const Profile ones = ManualExporter::Take().at(0);
  EXPECT_EQ(SumByThread(ones, 1)["thread"], before_ns + shared_ns) << "the thread's clock";
  EXPECT_EQ(SumByThread(ones, 0)["thread"], 1);
  ASSERT_TRUE(other.Stop().ok());
  const Profile others = ManualExporter::Take().at(0);
  EXPECT_EQ(SumByThread(others, 1)["thread"], shared_ns);
  EXPECT_EQ(SumByThread(others, 0)["thread"], 1);
}

TEST_F(ProfilerTest, StatsAreTheAccountSinceConstruction) {
  TestProfiler profiler;
  const Registration registration = profiler.RegisterThread("main");
  for (int session = 1; session <= 3; ++session) {
    ASSERT_TRUE(profiler.Start().ok());
    Sample();
    ASSERT_TRUE(profiler.Stop().ok());
    const Stats stats = profiler.stats();
    EXPECT_EQ(stats.samples, static_cast<std::uint64_t>(session));
    EXPECT_EQ(stats.exports, static_cast<std::uint64_t>(session));
    EXPECT_EQ(stats.requested_rate_hz, 100);
    EXPECT_NEAR(stats.measured_rate_hz, 100, 4) << "one sample a period, give or take the dither";
    EXPECT_GT(stats.memory_bytes, 0u);
  }
}

TEST_F(ProfilerTest, InAForksChildTheFirstUseBeginsAnew) {
  TestProfiler profiler({.threads = {.max_threads = 1}});
  std::optional<Registration> parents = profiler.RegisterThread("parent");
  ASSERT_TRUE(profiler.RegisterCode({.name = "jit", .start = &profiler, .bytes = 1}).status().ok());
  ManualPlatform::Fork();
  EXPECT_EQ(profiler.stats().threads_registered, 0u);
  EXPECT_EQ(profiler.Stop().code(), absl::StatusCode::kFailedPrecondition);
  std::optional<Registration> own = profiler.RegisterThread("child");
  EXPECT_TRUE(own->status().ok()) << own->status();
  parents.reset();
  EXPECT_EQ(profiler.stats().threads_registered, 1u)
      << "what the parent registered means nothing here";
  ASSERT_TRUE(profiler.Start().ok());
  Sample();
  ASSERT_TRUE(profiler.Stop().ok());
  // And so does the child's child.
  ManualPlatform::Fork();
  own.reset();
  own = profiler.RegisterThread("child's child");
  EXPECT_TRUE(own->status().ok()) << own->status();
  EXPECT_TRUE(profiler.Start().ok());
  EXPECT_TRUE(profiler.Stop().ok());
}

TEST_F(ProfilerTest, ADeepChainOfForksFindsRoomInEach) {
  TestProfiler profiler;
  for (std::size_t i = 0; i < 2 * internal::kMaxArenas; ++i) {
    ManualPlatform::Fork();
    ASSERT_TRUE(profiler.Start().ok()) << "child " << i;
    ASSERT_TRUE(profiler.Stop().ok());
  }
}

}  // namespace
}  // namespace strobe
