// What a session keeps of the last seconds, with real threads and clocks.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "platform/test_system.h"
#include "strobe/strobe.h"
#include "strobe/testing/profile_check.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using std::chrono::seconds;
using testing::BurnCpu;
using testing::CheckProfile;
using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::SumByName;
using testing::ThreadCpuNs;
using testing::WorkUntil;

class FlightRecorder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!NativePlatform::Available().ok()) GTEST_SKIP() << NativePlatform::Available();
    KeptProfiles::Take();
  }
  [[nodiscard]] ProfilerOptions Options() const {
    return {.sampling = {.cpu_frequency_hz = 1000},
            .keep = {.last_s = 30},
            .exporter = {.directory = directory_.path().string(), .period_s = 3600}};
  }
  // Finished profiles in a directory.
  static std::size_t Files(const std::filesystem::path& directory) {
    std::size_t files = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error))
      files += entry.path().string().ends_with(".pb.gz") ? 1 : 0;
    return files;
  }
  [[nodiscard]] std::size_t Dumps() const { return Files(directory_.path() / "last"); }
  // Works until the session has dumped, which it does at a drain. False if that takes too long.
  [[nodiscard]] bool WorkUntilDumped(std::size_t dumps) const {
    return WorkUntil([&] { return Dumps() >= dumps; }, [] { BurnCpu(1'000'000); });
  }

  testing::TemporaryDirectory directory_;
};

// The thread's clock stands still while both are taken, so they agree to the nanosecond.
TEST_F(FlightRecorder, AWindowIsWhatTheExportHasOfTheSameTime) {
  KeepingProfiler profiler(
      ProfilerOptions{.sampling = {.cpu_frequency_hz = 1000}, .keep = {.last_s = 3600}});
  ASSERT_TRUE(profiler.Start().ok());
  std::binary_semaphore has_worked(0);
  std::binary_semaphore may_end(0);
  std::int64_t low_ns = 0;
  std::int64_t high_ns = 0;
  std::thread worker([&] {
    const std::int64_t before_ns = ThreadCpuNs();
    const Registration registration = profiler.RegisterThread("worker");
    const std::int64_t begin_ns = ThreadCpuNs();
    testing::BurnUntilSampled(300'000'000);
    low_ns = ThreadCpuNs() - begin_ns;
    has_worked.release();
    may_end.acquire();
    high_ns = ThreadCpuNs() - before_ns;
  });
  has_worked.acquire();
  // The worker may still be on its way into the wait: the second look finds it there.
  absl::StatusOr<Profile> window = absl::UnknownError("");
  std::int64_t used_ns = -1;
  ASSERT_TRUE(testing::WaitUntil([&] {
    window = profiler.Record({.last = seconds(3600), .value_types = {"cpu"}});
    const std::int64_t before_ns = used_ns;
    used_ns = window.ok() ? SumByName({{*window, {}}}, "cpu")["worker"] : -2;
    return used_ns == before_ns;
  }));
  ASSERT_TRUE(window.ok()) << window.status();
  ASSERT_TRUE(profiler.Flush().ok());
  const std::int64_t exported_ns = SumByName(KeptProfiles::Take(), "cpu")["worker"];
  may_end.release();
  worker.join();
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(CheckProfile(*window), "");
  EXPECT_EQ(used_ns, exported_ns);
  EXPECT_GE(used_ns, low_ns);
  EXPECT_LE(used_ns, high_ns);
  EXPECT_EQ(window->value_types.size(), 1u);
  EXPECT_THAT(window->window, ::testing::HasSubstr("s of 3600.0 s: the session began then"));
}

TEST_F(FlightRecorder, ADumpIsAFileApartFromThePeriods) {
  Profiler profiler(Options());
  const Registration registration = profiler.RegisterThread("main");
  {
    const ScopedProfiler session(profiler);
    ASSERT_TRUE(session.status().ok()) << session.status();
    BurnCpu(50'000'000);
    EXPECT_TRUE(profiler.DumpLast().ok());
    EXPECT_EQ(Dumps(), 1u);
    EXPECT_TRUE(profiler.DumpLast().ok());
    EXPECT_EQ(Dumps(), 2u);
    EXPECT_EQ(Files(directory_.path()), 0u);
  }
  EXPECT_EQ(Files(directory_.path()), 1u);
  EXPECT_EQ(profiler.stats().dumps, 2u);
}

TEST_F(FlightRecorder, AnExceededLimitWritesWhatWasBefore) {
  Profiler profiler(Options());
  const Registration registration = profiler.RegisterThread("main");
  const ScopedProfiler session(profiler);
  ASSERT_TRUE(WorkUntil([&] { return profiler.stats().drains > 2; }, [] { BurnCpu(1'000'000); }));
  EXPECT_EQ(Dumps(), 0u);
  WatchedLimit depth("queue depth", 100);
  depth.Set(101);
  EXPECT_TRUE(WorkUntilDumped(1));
}

// Others may have the name, or the rights: the periods do not mind.
TEST_F(FlightRecorder, ADumpThatFailsIsCountedAndThePeriodsGoOn) {
  const std::filesystem::path last = directory_.path() / "last";
  std::ofstream(last) << "a file";
  Profiler profiler(Options());
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  BurnCpu(10'000'000);
  for (int dump = 0; dump < 2; ++dump) {
    EXPECT_THAT(std::string(profiler.DumpLast().message()), ::testing::HasSubstr(last.string()));
    EXPECT_TRUE(profiler.Flush().ok());
  }
  EXPECT_EQ(Files(directory_.path()), 2u);
  std::filesystem::remove(last);
  EXPECT_TRUE(profiler.DumpLast().ok());
  EXPECT_EQ(Dumps(), 1u);
  EXPECT_TRUE(profiler.Stop().ok());
  const Stats stats = profiler.stats();
  EXPECT_EQ(stats.dumps, 1u);
  EXPECT_EQ(stats.dumps_failed, 2u);
  EXPECT_EQ(stats.exports, 4u) << "three periods, and the dump";
  EXPECT_EQ(stats.exports_dropped, 0u);
  EXPECT_EQ(stats.amount_dropped, 0);
  EXPECT_EQ(stats.periods_extended, 0u);
}

TEST_F(FlightRecorder, CallsAtOnceHaveADumpEach) {
  constexpr int kEach = 5;
  Profiler profiler(Options());
  const ScopedProfiler session(profiler);
  constexpr std::size_t kThreads = 3;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < kEach; ++call) {
        const absl::Status status = profiler.DumpLast();
        EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Dumps(), kThreads * kEach);
}

TEST_F(FlightRecorder, ASlowSpanWritesWhatWasBeforeWhenItHasEnded) {
  ProfilerOptions options = Options();
  options.keep.slow_spans = true;
  Profiler profiler(options);
  const Registration registration = profiler.RegisterThread("main");
  const ScopedProfiler session(profiler);
  ASSERT_TRUE(WorkUntil([&] { return profiler.stats().drains > 2; }, [] { BurnCpu(1'000'000); }));
  EXPECT_EQ(Dumps(), 0u);
  {
    const SlowSpan span(1);  // slow by its end, whatever the machine does
    const std::uint64_t samples = profiler.stats().samples;
    ASSERT_TRUE(WorkUntil([&] { return profiler.stats().samples > samples + 1; },
                          [] { BurnCpu(1'000'000); }));
    // Each ends a slice with samples of the span, and the triggers are asked after each.
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(profiler.Record({.last = seconds(1)}).ok());
  }
  EXPECT_TRUE(WorkUntilDumped(1));
  const std::uint64_t drains = profiler.stats().drains;
  ASSERT_TRUE(
      WorkUntil([&] { return profiler.stats().drains > drains + 2; }, [] { BurnCpu(1'000'000); }));
  EXPECT_EQ(profiler.stats().dumps_skipped, 0u) << "it is one moment, by its end";
  EXPECT_EQ(Dumps(), 1u);
}

TEST_F(FlightRecorder, WhatIsNotKeptIsAnError) {
  KeepingProfiler nothing(ProfilerOptions{});
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing.DumpLast())) << "no session";
  ASSERT_TRUE(nothing.Start().ok());
  const absl::Status status = nothing.Record({.last = seconds(1)}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "nothing is kept: set keep.last_s");
  EXPECT_TRUE(nothing.Stop().ok());
  KeepingProfiler keeping(ProfilerOptions{.keep = {.last_s = 30}});
  ASSERT_TRUE(keeping.Start().ok());
  EXPECT_EQ(keeping.DumpLast().message(), "no output of this profiler takes windows");
  EXPECT_TRUE(keeping.Stop().ok());
}

}  // namespace
}  // namespace strobe
