// Sessions that begin and end by a signal from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "forked_child.h"
#include "kept_profiles.h"
#include "platform/test_system.h"
#include "strobe/profiler_from_environment.h"
#include "strobe/strobe.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

// Burns until the condition holds. False if that takes too long.
template <class Condition>
bool BurnUntil(const Condition& condition) {
  return testing::WorkUntil(condition, [] { testing::BurnCpu(1'000'000); });
}

class Toggle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!NativePlatform::Available().ok()) GTEST_SKIP() << NativePlatform::Available();
  }
  [[nodiscard]] ProfilerOptions Options() const {
    return {.sampling = {.cpu_frequency_hz = 1000, .toggle_signal = SIGUSR2},
            .exporter = {.directory = directory_.path().string(), .period_s = 3600}};
  }
  // Finished profiles.
  [[nodiscard]] std::size_t Files() const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      files += entry.path().string().ends_with(".pb.gz") ? 1 : 0;
    return files;
  }
  static bool IsRunning(Profiler& profiler) {
    return !absl::IsFailedPrecondition(profiler.Record(std::chrono::milliseconds(1)).status());
  }
  static void Send() { ASSERT_EQ(kill(getpid(), SIGUSR2), 0); }

  testing::TemporaryDirectory directory_;
};

TEST_F(Toggle, ASignalBeginsASessionAndTheNextOneEndsIt) {
  Profiler profiler(Options());
  ASSERT_TRUE(profiler.toggle_status().ok()) << profiler.toggle_status();
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(registration.status().ok());
  EXPECT_FALSE(IsRunning(profiler));
  for (std::size_t round = 1; round <= 3; ++round) {
    const std::uint64_t samples = profiler.stats().samples;
    Send();
    ASSERT_TRUE(BurnUntil([&] { return profiler.stats().samples > samples; })) << round;
    Send();
    ASSERT_TRUE(BurnUntil([&] { return Files() == round; })) << round;
    // A signal that comes before the last one was served would count as the same.
    ASSERT_TRUE(BurnUntil([&] { return !IsRunning(profiler); })) << round;
  }
}

TEST_F(Toggle, ASignalWritesWhatWasBefore) {
  ProfilerOptions options = Options();
  options.sampling.toggle_signal = 0;
  options.keep.last_s = 30;
  options.keep.dump_signal = SIGUSR2;
  Profiler profiler(options);
  ASSERT_TRUE(profiler.toggle_status().ok()) << profiler.toggle_status();
  const Registration registration = profiler.RegisterThread("main");
  const ScopedProfiler session(profiler);
  // A signal that comes before the last one was served counts as the same: so it is sent again.
  ASSERT_TRUE(
      BurnUntil([&] { return kill(getpid(), SIGUSR2) == 0 && profiler.stats().dumps >= 2; }));
  EXPECT_TRUE(BurnUntil([&] { return profiler.stats().exports >= 2; }));
  EXPECT_EQ(Files(), 0u) << "no period";
}

TEST_F(Toggle, TheProgramItselfMayEndWhatASignalBegan) {
  Profiler profiler(Options());
  Send();
  ASSERT_TRUE(BurnUntil([&] { return IsRunning(profiler); }));
  EXPECT_TRUE(profiler.Stop().ok());
  {
    ScopedProfiler session(profiler);
    ASSERT_TRUE(session.status().ok()) << session.status();
    Send();
    ASSERT_TRUE(BurnUntil([&] { return !IsRunning(profiler); }));
  }
  EXPECT_TRUE(profiler.Start().ok());
}

TEST_F(Toggle, ASecondProfilerIsRefusedAndWorksOtherwise) {
  Profiler first(Options());
  ASSERT_TRUE(first.toggle_status().ok());
  Profiler second(Options());
  EXPECT_EQ(second.toggle_status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.toggle_status().message()),
              ::testing::StartsWith("sampling.toggle_signal: signal "));
  ProfilerOptions options = Options();
  options.sampling.toggle_signal = 0;
  options.keep.last_s = 30;
  options.keep.dump_signal = SIGUSR2;
  Profiler third(options);
  EXPECT_THAT(std::string(third.toggle_status().message()),
              ::testing::StartsWith("keep.dump_signal: signal "));
  EXPECT_TRUE(second.Start().ok());
  EXPECT_TRUE(second.Stop().ok());
}

std::atomic<int> handled{0};
void OwnHandler(int /*signal*/) { handled.fetch_add(1); }

TEST_F(Toggle, TheProgramsOwnHandlerStays) {
  struct sigaction own {};
  own.sa_handler = &OwnHandler;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR2, &own, &before), 0);
  EXPECT_EQ(before.sa_handler, SIG_DFL) << "the tests before have given it back";
  {
    Profiler profiler(Options());
    EXPECT_EQ(profiler.toggle_status().code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_EQ(raise(SIGUSR2), 0);
    EXPECT_EQ(handled.load(), 1);
    EXPECT_FALSE(IsRunning(profiler));
  }
  ASSERT_EQ(raise(SIGUSR2), 0);
  EXPECT_EQ(handled.load(), 2);
  ASSERT_EQ(sigaction(SIGUSR2, &before, nullptr), 0);
}

TEST_F(Toggle, AForksChildTogglesItsOwnProfiler) {
  if (testing::kIsThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer allows no threads after a fork";
  Profiler profiler(Options());
  ASSERT_TRUE(profiler.toggle_status().ok());
  const int status = testing::RunInChild([&] {
    // Before the child uses the profiler, the signal does nothing.
    STROBE_CHILD_CHECK(raise(SIGUSR2) == 0);
    STROBE_CHILD_CHECK(profiler.toggle_status().ok());
    STROBE_CHILD_CHECK(!IsRunning(profiler));
    STROBE_CHILD_CHECK(raise(SIGUSR2) == 0);
    STROBE_CHILD_CHECK(BurnUntil([&] { return IsRunning(profiler); }));
    STROBE_CHILD_CHECK(profiler.Stop().ok());
  });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(IsRunning(profiler)) << "the child's signals are the child's";
  Send();
  EXPECT_TRUE(BurnUntil([&] { return IsRunning(profiler); }));
}

TEST_F(Toggle, TheVariableAloneAwaitsTheSignal) {
  testing::SetVariable("STROBE_TOGGLE_SIGNAL", "USR2");
  testing::SetVariable("STROBE_OUTPUT_DIRECTORY", directory_.path().string());
  {
    ProfilerFromEnvironment profiler("main");
    EXPECT_TRUE(profiler.status().ok()) << profiler.status();
    ASSERT_NE(profiler.profiler(), nullptr);
    EXPECT_FALSE(IsRunning(*profiler.profiler()));
    Send();
    EXPECT_TRUE(BurnUntil([&] { return profiler.profiler()->stats().samples > 0; }));
  }
  EXPECT_EQ(Files(), 1U) << "the end exports";
  testing::UnsetVariable("STROBE_TOGGLE_SIGNAL");
  testing::UnsetVariable("STROBE_OUTPUT_DIRECTORY");
}

}  // namespace
}  // namespace strobe
