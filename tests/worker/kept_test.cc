// What a worker process keeps of the last seconds of its program: the calls, the signal and the
// triggers of tests/integration/flight_recorder_test.cc, beside it.
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "can_begin_workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/measured_work.h"
#include "platform/test_system.h"
#include "strobe/platform/native.h"
#include "strobe/strobe.h"
#include "strobe/testing/profile_check.h"
#include "strobe/worker/run_worker.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using std::chrono::seconds;
using testing::BurnCpu;
using testing::ThreadCpuNs;
using testing::WorkUntil;

class KeptByWorker : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
    if (!NativePlatform::Available().ok()) GTEST_SKIP() << NativePlatform::Available();
  }
  [[nodiscard]] ProfilerOptions Options(KeepOptions keep) const {
    return {.sampling = {.cpu_frequency_hz = 1000},
            .keep = keep,
            .exporter = {.directory = directory_.path().string(), .period_s = 3600},
            .worker = {.enabled = true, .fallback = WorkerFallback::kNone}};
  }
  // Finished profiles of what was before.
  [[nodiscard]] std::size_t Dumps() const {
    std::size_t files = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() / "last", error))
      files += entry.path().string().ends_with(".pb.gz") ? 1 : 0;
    return files;
  }
  [[nodiscard]] bool WorkUntilDumped(std::size_t dumps) const {
    return WorkUntil([&] { return Dumps() >= dumps; }, [] { BurnCpu(1'000'000); });
  }

  testing::TemporaryDirectory directory_;
};

std::int64_t Sum(const Profile& profile) {
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < profile.samples.size(); ++row) sum += profile.Values(row)[0];
  return sum;
}

TEST_F(KeptByWorker, AWindowHasTheTimeOfTheThreadsThatWorked) {
  Profiler profiler(Options({.last_s = 3600}));
  ASSERT_TRUE(profiler.Start().ok());
  const std::int64_t before_ns = ThreadCpuNs();
  const Registration registration = profiler.RegisterThread("main");
  const std::int64_t begin_ns = ThreadCpuNs();
  BurnCpu(100'000'000);
  const std::int64_t least_ns = ThreadCpuNs() - begin_ns;
  const absl::StatusOr<Profile> window =
      profiler.Record({.last = seconds(3600), .value_types = {"cpu"}});
  const std::int64_t most_ns = ThreadCpuNs() - before_ns;
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_EQ(testing::CheckProfile(*window), "");
  ASSERT_EQ(window->value_types.size(), 1u);
  EXPECT_GE(Sum(*window), least_ns);
  EXPECT_LE(Sum(*window), most_ns);
  EXPECT_THAT(window->window, ::testing::HasSubstr("s of 3600.0 s: the session began then"));
  EXPECT_TRUE(profiler.Stop().ok());
}

TEST_F(KeptByWorker, ACallAndASignalWriteWhatWasBefore) {
  Profiler profiler(Options({.last_s = 30, .dump_signal = SIGUSR1}));
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  BurnCpu(50'000'000);
  const absl::Status status = profiler.DumpLast();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Dumps(), 1u);
  ASSERT_EQ(kill(getpid(), SIGUSR1), 0);
  EXPECT_TRUE(WorkUntilDumped(2));
  EXPECT_TRUE(profiler.Stop().ok());
}

// The worker of this process, by a variable that it has from it; 0 if there is none.
pid_t FindWorker(const std::string& variable) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto id = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    if (id <= 0 || id == getpid()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string variables(std::istreambuf_iterator<char>(file), {});
    if (variables.find(variable) != std::string::npos) return id;
  }
  return 0;
}

TEST_F(KeptByWorker, AWorkerThatIsStoppedHoldsNobodyForEver) {
  const std::string number = std::to_string(getpid());
  testing::SetVariable("KEPT_TEST_OF", number);
  ProfilerOptions options = Options({.last_s = 30, .dump_signal = SIGUSR1});
  options.exporter.stop_timeout_s = 0.1;
  pid_t worker = 0;
  {
    Profiler profiler(options);
    ASSERT_TRUE(profiler.Start().ok());
    worker = FindWorker("KEPT_TEST_OF=" + number);
    ASSERT_NE(worker, 0);
    ASSERT_EQ(kill(worker, SIGSTOP), 0);
    EXPECT_TRUE(absl::IsDeadlineExceeded(profiler.DumpLast()));
    EXPECT_TRUE(absl::IsDeadlineExceeded(profiler.Record({.last = seconds(1)}).status()));
    ASSERT_EQ(kill(getpid(), SIGUSR1), 0);
  }
  kill(worker, SIGKILL);
  testing::UnsetVariable("KEPT_TEST_OF");
}

TEST_F(KeptByWorker, ASlowSpanWritesWhatWasBefore) {
  Profiler profiler(Options({.last_s = 30, .slow_spans = true}));
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  // A drain before: what ends before the first is not looked at.
  ASSERT_TRUE(profiler.Flush().ok());
  EXPECT_EQ(Dumps(), 0u);
  {
    const SlowSpan span(1);  // slow by its end, whatever the machine does
    BurnCpu(1'000'000);
  }
  EXPECT_TRUE(WorkUntilDumped(1));
  EXPECT_TRUE(profiler.Stop().ok());
}

TEST_F(KeptByWorker, WhatIsNotKeptIsAnError) {
  Profiler profiler(Options({}));
  EXPECT_TRUE(absl::IsFailedPrecondition(profiler.DumpLast())) << "no session";
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_EQ(profiler.Record({.last = seconds(1)}).status().message(),
            "nothing is kept: set keep.last_s");
  EXPECT_TRUE(profiler.Stop().ok());
}

}  // namespace
}  // namespace strobe

int main(int argc, char** argv) {
  strobe::RunWorkerIfAsked(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
