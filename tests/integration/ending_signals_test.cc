// Programs that a signal from outside ends while they are profiled: their last period is exported,
// and they end by that signal. Each is this one, started anew.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "gtest/gtest.h"
#include "strobe/base/sanitizers.h"
#include "strobe/own_parts.h"
#include "written_profiles.h"

// A thread is there when the signal comes.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }

namespace strobe {
namespace {

using testing::BurnCpu;
using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;
using testing::RunInChild;
using testing::WrittenProfiles;

constexpr int kStatus = 3;
constexpr std::int64_t kBurnNs = 20'000'000;
constexpr unsigned kPatienceSeconds = 120;
constexpr double kForEverS = 3600;

[[noreturn]] void WaitForTheEnd() {
  while (true) pause();
}

class EndingSignals : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] ProfilerOptions Options(double stop_timeout_s = kPatienceSeconds) const {
    return {.sampling = {.cpu_frequency_hz = 1000},
            .exporter = {.directory = directory_.string(),
                         .period_s = kForEverS,
                         .stop_timeout_s = stop_timeout_s,
                         .export_on_signal = true}};
  }

  // What the shell that starts the tests has set means nothing here.
  static void Begin() {
    alarm(kPatienceSeconds);
    for (const int number : {SIGHUP, SIGINT, SIGTERM}) signal(number, SIG_DFL);
  }
  // As a program has it that never destroys what it has.
  template <class Traits = DefaultTraits>
  static BasicProfiler<Traits>& RunningProfiler(const ProfilerOptions& options) {
    static auto* const profiler = new BasicProfiler<Traits>(options);
    static auto* const registration = new Registration(profiler->RegisterThread("main"));
    if (!registration->status().ok() || !profiler->Start().ok()) _exit(1);
    BurnCpu(kBurnNs);
    return *profiler;
  }

  // CPU time in the program's profiles.
  [[nodiscard]] std::int64_t WrittenNs() const {
    std::int64_t sum_ns = 0;
    for (const testing::PprofProfile& profile : WrittenProfiles(directory_)) {
      for (const auto& sample : profile.samples) sum_ns += sample.values.at(1);
    }
    return sum_ns;
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("strobe_ending_signals_") +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(EndingSignals, EachExportsTheRunningPeriodAndEndsTheProgram) {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    SetUp();
    EXPECT_EXIT(
        {
          Begin();
          RunningProfiler(Options());
          kill(getpid(), number);
          WaitForTheEnd();
        },
        KilledBySignal(number), "");
    EXPECT_EQ(WrittenProfiles(directory_).size(), 1U) << number;
    EXPECT_GE(WrittenNs(), kBurnNs) << number;
  }
}

TEST_F(EndingSignals, WithoutTheOptionTheEndIsWithoutAProfile) {
  EXPECT_EXIT(
      {
        Begin();
        ProfilerOptions options = Options();
        options.exporter.export_on_signal = false;
        RunningProfiler(options);
        kill(getpid(), SIGTERM);
        WaitForTheEnd();
      },
      KilledBySignal(SIGTERM), "");
  EXPECT_TRUE(WrittenProfiles(directory_).empty());
}

// A wait that a handler has interrupted would return, and the program would go on.
TEST_F(EndingSignals, TheInterruptedThreadGoesNoFurther) {
  EXPECT_EXIT(
      {
        Begin();
        RunningProfiler(Options());
        std::thread([] { kill(getpid(), SIGINT); }).detach();
        pause();
        _exit(9);
      },
      KilledBySignal(SIGINT), "");
  EXPECT_GE(WrittenNs(), kBurnNs);
}

TEST_F(EndingSignals, WhatTheProgramHandlesOrIgnoresStaysItsOwn) {
  EXPECT_EXIT(
      {
        Begin();
        signal(SIGINT, [](int) { _exit(kStatus); });
        signal(SIGHUP, SIG_IGN);
        RunningProfiler(Options());
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGINT);
        WaitForTheEnd();
      },
      ExitedWithCode(kStatus), "");
  EXPECT_TRUE(WrittenProfiles(directory_).empty());
}

// The program's handler may call the one before.
struct sigaction action_before;

TEST_F(EndingSignals, AHandlerThatTheProgramInstallsLaterDecides) {
  EXPECT_EXIT(
      {
        Begin();
        Profiler& profiler = RunningProfiler(Options());
        struct sigaction own {};
        static bool has_come = false;
        own.sa_handler = [](int number) {
          has_come = true;
          if (action_before.sa_handler != SIG_DFL) action_before.sa_handler(number);
        };
        sigaction(SIGTERM, &own, &action_before);
        kill(getpid(), SIGTERM);
        if (!has_come || !profiler.Stop().ok()) _exit(1);
        _exit(kStatus);
      },
      ExitedWithCode(kStatus), "");
  EXPECT_GE(WrittenNs(), kBurnNs);
}

TEST_F(EndingSignals, AProgramThatWaitsForSignalsGetsThem) {
  EXPECT_EXIT(
      {
        Begin();
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        RunningProfiler(Options());
        kill(getpid(), SIGTERM);
        int number = 0;
        if (sigwait(&signals, &number) != 0 || number != SIGTERM) _exit(1);
        _exit(kStatus);
      },
      ExitedWithCode(kStatus), "");
}

struct HangingExporter {
  explicit HangingExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) { WaitForTheEnd(); }
};
struct HangingTraits : testing::KeepingTraits {
  using Outputs = OutputList<Output<testing::KeepingEncoder, HangingExporter>>;
};

// A shell and `timeout` may send several signals together, so the program is sent further ones
// until it has ended.
TEST_F(EndingSignals, AnotherSignalEndsTheProgramAtOnce) {
  if (internal::kHasThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer blocks all signals while a handler runs";
  EXPECT_EXIT(
      {
        Begin();
        RunningProfiler<HangingTraits>(Options(kForEverS));
        std::thread([] {
          // The system gives a signal to any thread, and that of the first goes no further.
          sigset_t signals;
          sigfillset(&signals);
          pthread_sigmask(SIG_BLOCK, &signals, nullptr);
          kill(getpid(), SIGINT);
          for (;; usleep(1000)) kill(getpid(), SIGTERM);
        }).detach();
        WaitForTheEnd();
      },
      KilledBySignal(SIGTERM), "");
}

TEST_F(EndingSignals, SignalsThatComeTogetherAreOne) {
  EXPECT_EXIT(
      {
        Begin();
        RunningProfiler(Options());
        sigset_t signals;
        sigset_t before;
        sigfillset(&signals);
        pthread_sigmask(SIG_BLOCK, &signals, &before);
        for (const int number : {SIGINT, SIGHUP, SIGTERM}) kill(getpid(), number);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        WaitForTheEnd();
      },
      [](int status) { return WIFSIGNALED(status); }, "");
  EXPECT_GE(WrittenNs(), kBurnNs);
}

TEST_F(EndingSignals, AnExportThatHangsDelaysTheEndUntilTheDeadline) {
  EXPECT_EXIT(
      {
        Begin();
        RunningProfiler<HangingTraits>(Options(/*stop_timeout_s=*/0.1));
        kill(getpid(), SIGINT);
        WaitForTheEnd();
      },
      KilledBySignal(SIGINT), "");
}

TEST_F(EndingSignals, AfterTheSessionASignalEndsTheProgram) {
  EXPECT_EXIT(
      {
        Begin();
        if (!RunningProfiler(Options(kForEverS)).Stop().ok()) _exit(1);
        kill(getpid(), SIGINT);
        WaitForTheEnd();
      },
      KilledBySignal(SIGINT), "");
  EXPECT_EQ(WrittenProfiles(directory_).size(), 1U);
}

TEST_F(EndingSignals, EveryRunningProfilerExports) {
  EXPECT_EXIT(
      {
        Begin();
        RunningProfiler(Options());
        auto* const other = new Profiler(Options());
        if (!other->Start().ok()) _exit(1);
        kill(getpid(), SIGTERM);
        WaitForTheEnd();
      },
      KilledBySignal(SIGTERM), "");
  EXPECT_EQ(WrittenProfiles(directory_).size(), 2U);
}

TEST_F(EndingSignals, AForkedChildEndsAtOnceUntilItHasASession) {
  if (internal::kHasThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer begins no threads in a child of a program with threads";
  EXPECT_EXIT(
      {
        Begin();
        Profiler& profiler = RunningProfiler(Options());
        const auto end = [] {
          kill(getpid(), SIGTERM);
          WaitForTheEnd();
        };
        if (!KilledBySignal(SIGTERM)(RunInChild(end)) || !WrittenProfiles(directory_).empty())
          _exit(1);
        const auto end_session = [&] {
          if (!profiler.Start().ok()) _exit(1);
          end();
        };
        if (!KilledBySignal(SIGTERM)(RunInChild(end_session)) ||
            WrittenProfiles(directory_).size() != 1)
          _exit(2);
        _exit(kStatus);
      },
      ExitedWithCode(kStatus), "");
}

// What the signal interrupts may hold the allocator's locks. The end comes in any case.
TEST_F(EndingSignals, AThreadInTheAllocatorIsInterruptedToo) {
  EXPECT_EXIT(
      {
        Begin();
        RunningProfiler(Options(/*stop_timeout_s=*/1));
        std::thread([] { kill(getpid(), SIGINT); }).detach();
        std::vector<std::string> kept(1000);
        for (std::size_t i = 0;; ++i) kept[i % kept.size()] = std::string(i % 3000, 'x');
      },
      KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace strobe
