// No image is killed by a signal of ours that was on its way when it was executed.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "gtest/gtest.h"

// NOLINTNEXTLINE(readability-redundant-declaration): POSIX leaves declaring it to the program
extern char** environ;

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::KeepingProfiler;
using testing::RunInChild;
using testing::RunRegistered;

constexpr int kImages = testing::kIsSanitized ? 20 : 150;

struct Case {
  const char* name;
  std::int64_t signal;
  SampleTrigger trigger;
  double wall_frequency_hz;
};

class Exec : public ::testing::TestWithParam<Case> {
 protected:
  static ProfilerOptions Options() {
    const Case& one = GetParam();
    return {.sampling = {.cpu_frequency_hz = 2000,
                         .wall_frequency_hz = one.wall_frequency_hz,
                         .signal_number = one.signal,
                         .trigger = one.trigger,
                         .max_overhead = 1}};
  }
};

// In a child: `threads` busy threads under a session, then exec, from the initial thread or from
// another one.
[[noreturn]] void ExecuteUnderLoad(const ProfilerOptions& options, bool from_other_thread) {
  KeepingProfiler profiler(options);
  STROBE_CHILD_CHECK(profiler.Start().ok());
  const auto registration = profiler.RegisterThread("main");
  std::atomic<bool> is_running{false};
  std::thread busy([&] {
    RunRegistered(profiler, "busy", [&] {
      is_running = true;
      while (true) BurnCpu(1'000'000);
    });
  });
  while (!is_running.load()) BurnCpu(100'000);
  BurnCpu(1'000'000);
  const auto execute = [] {
    execl("/bin/true", "true", nullptr);
    _exit(127);
  };
  if (from_other_thread) {
    std::thread([&] { RunRegistered(profiler, "executes", execute); }).join();
  }
  execute();
  _exit(126);
}

TEST_P(Exec, ImageLives) {
  for (int i = 0; i < kImages; ++i) {
    ASSERT_EQ(RunInChild([&] { ExecuteUnderLoad(Options(), i % 4 == 3); }), 0) << "image " << i;
  }
}

TEST_P(Exec, SpawnedImageLives) {
  KeepingProfiler profiler(Options());
  const BasicScopedProfiler session(profiler);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      RunRegistered(profiler, "spawns", [] {
        for (int j = 0; j < kImages / 2; ++j) {
          BurnCpu(100'000);
          const std::string path = "/bin/true";
          std::vector<char> name(path.begin(), path.end());
          name.push_back('\0');
          char* const arguments[] = {name.data(), nullptr};
          pid_t child = -1;
          ASSERT_EQ(posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environ), 0);
          int status = -1;
          ASSERT_EQ(waitpid(child, &status, 0), child);
          ASSERT_EQ(status, 0);
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Signals, Exec,
                         ::testing::Values(Case{"UrgTimers", 0, SampleTrigger::kTimers, 0},
                                           Case{"UrgRequests", 0, SampleTrigger::kRandom, 1000},
                                           Case{"ProfTimers", SIGPROF, SampleTrigger::kTimers, 0},
                                           Case{"ProfRequests", SIGPROF, SampleTrigger::kRandom,
                                                1000}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace strobe
