// Programs that exit while they are profiled: by their own status, and with the last period
// written. Each is this one, started anew.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>

#include "forked_child.h"
#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "written_profiles.h"

// A thread that ends while another is about to join it is no leak, and exit() may come just then.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::KeepingProfiler;
using testing::RunInChild;
using testing::WrittenProfiles;

constexpr int kStatus = 3;

class Exit : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] ProfilerOptions Options() const {
    return {.sampling = {.cpu_frequency_hz = 1000}, .exporter = {.directory = directory_.string()}};
  }

  // As a program has it that never destroys what it has: with a session, and this thread
  // registered.
  static Profiler& RunningProfiler(const ProfilerOptions& options) {
    static auto* const profiler = new Profiler(options);
    static auto* const registration = new Registration(profiler->RegisterThread("main"));
    if (!registration->status().ok() || !profiler->Start().ok()) _exit(1);
    BurnCpu(20'000'000);
    return *profiler;
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("strobe_exit_") +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Exit, AProfilerThatIsNeverDestroyedWritesItsLastPeriod) {
  EXPECT_EXIT(
      {
        RunningProfiler(Options());
        std::exit(kStatus);
      },
      ::testing::ExitedWithCode(kStatus), "");
  const auto profiles = WrittenProfiles(directory_);
  ASSERT_EQ(profiles.size(), 1U);
  EXPECT_FALSE(profiles[0].samples.empty());
}

TEST_F(Exit, AnOptionKeepsItFromThat) {
  EXPECT_EXIT(
      {
        ProfilerOptions options = Options();
        options.exporter.stop_at_exit = false;
        RunningProfiler(options);
        std::exit(kStatus);
      },
      ::testing::ExitedWithCode(kStatus), "");
  EXPECT_TRUE(WrittenProfiles(directory_).empty());
}

TEST_F(Exit, AForksChildWritesOnlyItsOwn) {
  if (testing::kIsSanitized)
    GTEST_SKIP() << "the child of a process with threads cannot use a sanitizer's allocator";
  EXPECT_EXIT(
      {
        Profiler& profiler = RunningProfiler(Options());
        if (RunInChild([] { std::exit(0); }) != 0 || RunInChild([] {}) != 0) _exit(1);
        if (!WrittenProfiles(directory_).empty()) _exit(2);
        const auto own_session = [&] {
          if (!profiler.Start().ok()) _exit(1);
          std::exit(0);
        };
        if (RunInChild(own_session) != 0 || WrittenProfiles(directory_).size() != 1) _exit(4);
        std::exit(kStatus);
      },
      ::testing::ExitedWithCode(kStatus), "");
  EXPECT_EQ(WrittenProfiles(directory_).size(), 2U);
}

TEST_F(Exit, AStaticProfilerLeavesADetachedThreadItsRegistration) {
  EXPECT_EXIT(
      {
        static KeepingProfiler profiler;
        static std::latch is_registered(1);
        if (!profiler.Start().ok()) _exit(1);
        std::thread([] {
          const auto registration = profiler.RegisterThread("detached");
          is_registered.count_down();
          while (true) BurnCpu(1'000'000);
        }).detach();
        is_registered.wait();
        std::exit(kStatus);
      },
      ::testing::ExitedWithCode(kStatus),
      "^strobe: a Profiler was destroyed before 1 thread[^\n]*\n$");
}

TEST_F(Exit, WhileAnotherThreadStartsStopsAndDestroys) {
  EXPECT_EXIT(
      {
        static std::atomic<int> rounds{0};
        std::thread([] {
          while (true) {
            KeepingProfiler profiler;
            if (!profiler.Start().ok()) _exit(1);
            ++rounds;
            rounds.notify_all();
          }
        }).detach();
        while (rounds.load() < 3) rounds.wait(rounds.load());
        std::exit(kStatus);
      },
      ::testing::ExitedWithCode(kStatus), "");
}

struct HangingExporter {
  explicit HangingExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    while (true) pause();
  }
};
struct HangingTraits : testing::KeepingTraits {
  using Outputs = OutputList<Output<testing::KeepingEncoder, HangingExporter>>;
};

TEST_F(Exit, DoesNotWaitForAnExportLongerThanStopDoes) {
  EXPECT_EXIT(
      {
        alarm(60);
        auto* const profiler = new BasicProfiler<HangingTraits>(
            {.exporter = {.period_s = 3600, .stop_timeout_s = 0.1}});
        if (!profiler->Start().ok()) _exit(1);
        std::exit(kStatus);
      },
      ::testing::ExitedWithCode(kStatus), "");
}

}  // namespace
}  // namespace strobe
