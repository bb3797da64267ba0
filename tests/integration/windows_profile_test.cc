// What a profile of Windows threads says: all the CPU time that the system says, and the functions
// that used it.
#include <gtest/gtest.h>
#include <windows.h>
// After it.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../src/platform/windows/stopped_thread.h"
#include "kept_profiles.h"
#include "strobe/own_parts.h"

namespace strobe::testing {

// Not in the anonymous namespace: these names are what a reader of the profile looks for.
__attribute__((noinline)) std::uint64_t UseProcessor(std::uint64_t value) {
  for (int i = 0; i < 4'000'000; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    __asm__ volatile("" : "+r"(value));
  }
  return value;
}
__attribute__((noinline)) std::uint64_t CallWorker(std::uint64_t value) {
  return UseProcessor(value) + 1;
}

namespace {

std::int64_t OwnCpuNs() {
  return NativePlatform::ThreadCpuTimeNs(NativePlatform::CurrentThreadId());
}

// Reads no clock meanwhile: by Wine that asks another process, and a thread is mostly met where it
// waits for an answer.
CpuBounds Work(BasicProfiler<NamedKeepingTraits>& profiler, const std::string& name, int calls) {
  const std::int64_t before_ns = OwnCpuNs();
  CpuBounds bounds;
  {
    const Registration registration = profiler.RegisterThread(name);
    EXPECT_TRUE(registration.status().ok()) << registration.status();
    const std::int64_t begin_ns = OwnCpuNs();
    std::uint64_t value = 1;
    for (int i = 0; i < calls; ++i) value = CallWorker(value);
    EXPECT_NE(value, 0u);
    bounds.low_ns = OwnCpuNs() - begin_ns;
  }
  bounds.high_ns = OwnCpuNs() - before_ns;
  return bounds;
}

// The names of a sample's frames, leaf first.
std::vector<std::string> NamesOf(const KeptProfile& one, const ProfileSample& sample) {
  std::vector<std::string> names;
  for (std::uint32_t node = sample.stack; node != 0; node = one.profile.stacks[node].parent) {
    const std::uint32_t number = one.profile.stacks[node].frame;
    const Frame& frame = one.profile.frames[number];
    const std::uint32_t function = one.symbols.frames[number].function;
    if (frame.is_pseudo()) {
      names.emplace_back(PseudoFrameName(static_cast<PseudoFrame>(frame.address)));
    } else {
      names.push_back(function == FrameSymbols::kNone ? "" : one.symbols.functions[function].name);
    }
  }
  return names;
}

TEST(WindowsProfile, SaysWhichFunctionsUsedTheProcessorAndHowMuch) {
  KeptProfiles::Take();
  std::map<std::string, CpuBounds> bounds;
  BasicProfiler<NamedKeepingTraits> profiler({.sampling = {.cpu_frequency_hz = 200}});
  ASSERT_TRUE(profiler.Start().ok());
  {
    std::thread whole([&] { bounds["whole"] = Work(profiler, "whole", 150); });
    whole.join();
    std::thread half([&] { bounds["half"] = Work(profiler, "half", 75); });
    half.join();
  }
  ASSERT_TRUE(profiler.Stop().ok());

  std::map<std::string, std::int64_t> cpu_ns;
  std::int64_t stacks = 0;
  std::int64_t right = 0;
  std::int64_t complete = 0;
  for (const KeptProfile& one : KeptProfiles::Take()) {
    constexpr std::size_t kCpuColumn = 1;
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const ProfileSample& sample = one.profile.samples[i];
      cpu_ns[one.profile.Labels(i).Text(kThreadNameLabel)] += one.profile.Values(i)[kCpuColumn];
      const std::int64_t count = one.profile.Values(i)[0];
      const std::vector<std::string> names = NamesOf(one, sample);
      if (names.size() < 2) continue;
      stacks += count;
      for (std::size_t n = 0; n + 1 < names.size(); ++n) {
        if (names[n].find("UseProcessor") == std::string::npos) continue;
        right += names[n + 1].find("CallWorker") != std::string::npos ? count : 0;
      }
      complete += names.back().front() != '[' ? count : 0;
    }
  }
  for (const auto& [name, bound] : bounds) {
    EXPECT_GE(cpu_ns[name], bound.low_ns) << name;
    EXPECT_LE(cpu_ns[name], bound.high_ns) << name;
  }
  EXPECT_GT(stacks, 0);
  EXPECT_GE(right * 2, stacks) << right << " of " << stacks;
  EXPECT_EQ(complete, stacks);
}

// An idle thread is not stopped; one that ends is not waited for.
TEST(WindowsProfile, ThreadsComeAndGo) {
  BasicProfiler<NamedKeepingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  std::atomic<std::uint64_t> sum{0};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Registration registration = profiler.RegisterThread("short");
        for (int call = 0; call < 3; ++call) sum += CallWorker(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_NE(sum, 0u);
  EXPECT_EQ(profiler.stats().threads_registered, 0u);
}

// No thread is stopped to find out that it waits.
TEST(WindowsProfile, AThousandWaitingThreadsAreNeverStopped) {
  constexpr int kThreads = 1000;
  BasicProfiler<NamedKeepingTraits> profiler({.sampling = {.cpu_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  const HANDLE end = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  std::atomic<int> waiting{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Registration registration = profiler.RegisterThread("waits");
      EXPECT_TRUE(registration.status().ok()) << registration.status();
      ++waiting;
      WaitForSingleObject(end, INFINITE);
    });
  }
  while (waiting < kThreads) Sleep(10);
  // Between two drains there are some looks.
  const auto wait_for_drains = [&](std::uint64_t count) {
    const std::uint64_t drains = profiler.stats().drains;
    while (profiler.stats().drains < drains + count) Sleep(10);
  };
  // A thread that begins to wait late is still stopped for what he used before it, and a clock of
  // 10 ms a step may say that late, too. So not each window is without stops, but one comes.
  constexpr int kMaxWindows = 20;
  std::uint64_t stops_of_waiting = 1;
  for (int window = 0; window < kMaxWindows && stops_of_waiting != 0; ++window) {
    const std::uint64_t stops = internal::GlobalStopCounters().stopped;
    wait_for_drains(10);
    stops_of_waiting = internal::GlobalStopCounters().stopped - stops;
  }
  SetEvent(end);
  for (std::thread& thread : threads) thread.join();
  CloseHandle(end);
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(stops_of_waiting, 0u);
}

// STROBE_TEST_SECONDS of CPU time for the thread that waits for nothing.
TEST(WindowsProfile, EachThreadsCpuTimeIsWhatTheSystemSays) {
  const char* const asked = std::getenv("STROBE_TEST_SECONDS");
  const std::int64_t busy_ns =
      (asked == nullptr ? 1 : std::atoi(asked)) * std::int64_t{1'000'000'000};
  KeptProfiles::Take();
  BasicProfiler<NamedKeepingTraits> profiler({.sampling = {.cpu_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  std::map<std::string, CpuBounds> bounds{{"busy", {}}, {"half busy", {}}, {"waits", {}}};
  std::atomic<bool> is_ending{false};
  const HANDLE end = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  const auto run = [&](const std::string& name, auto body) {
    return std::thread([&, name, body] {
      const std::int64_t before_ns = OwnCpuNs();
      {
        const Registration registration = profiler.RegisterThread(name);
        EXPECT_TRUE(registration.status().ok()) << registration.status();
        const std::int64_t begin_ns = OwnCpuNs();
        body(begin_ns);
        bounds[name].low_ns = OwnCpuNs() - begin_ns;
      }
      bounds[name].high_ns = OwnCpuNs() - before_ns;
    });
  };
  std::vector<std::thread> threads;
  threads.push_back(run("busy", [&](std::int64_t begin_ns) {
    while (OwnCpuNs() - begin_ns < busy_ns) EXPECT_NE(CallWorker(1), 0u);
    is_ending = true;
    SetEvent(end);
  }));
  threads.push_back(run("half busy", [&](std::int64_t /*begin_ns*/) {
    while (!is_ending) {
      EXPECT_NE(CallWorker(1), 0u);
      Sleep(5);
    }
  }));
  threads.push_back(
      run("waits", [&](std::int64_t /*begin_ns*/) { WaitForSingleObject(end, INFINITE); }));
  for (std::thread& thread : threads) thread.join();
  CloseHandle(end);
  ASSERT_TRUE(profiler.Stop().ok());

  std::map<std::string, std::int64_t> cpu_ns;
  std::map<std::string, std::int64_t> sampled_ns;
  for (const KeptProfile& one : KeptProfiles::Take()) {
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const ProfileSample& sample = one.profile.samples[i];
      const std::string& name = one.profile.Labels(i).Text(kThreadNameLabel);
      const bool is_sampled =
          !one.profile.frames[one.profile.stacks[sample.stack].frame].is_pseudo();
      cpu_ns[name] += one.profile.Values(i)[1];
      sampled_ns[name] += is_sampled ? one.profile.Values(i)[1] : 0;
    }
  }
  for (const auto& [name, bound] : bounds) {
    const auto percent = [&, low_ns = bound.low_ns](std::int64_t ns) {
      return low_ns == 0 ? 0 : 100 * static_cast<double>(ns - low_ns) / static_cast<double>(low_ns);
    };
    std::printf(
        "%s: %.2f s by GetThreadTimes; the profile differs by %+.2f %%, its stacks alone by %+.2f "
        "%%\n",
        name.c_str(), static_cast<double>(bound.low_ns) / 1e9, percent(cpu_ns[name]),
        percent(sampled_ns[name]));
    EXPECT_GE(cpu_ns[name], bound.low_ns) << name;
    EXPECT_LE(cpu_ns[name], bound.high_ns) << name;
  }
}

}  // namespace
}  // namespace strobe::testing
