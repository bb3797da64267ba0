// A thread that waits is left in peace.
#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::BurnUntilSampled;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;

std::int64_t MonotonicNs() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// A line of /proc/self/task/<tid>/status, without its name.
std::string StatusOf(pid_t tid, const std::string& name) {
  std::ifstream status("/proc/self/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(name.size() + 1);
  }
  return {};
}
std::int64_t SwitchesOf(pid_t tid) { return std::stoll(StatusOf(tid, "voluntary_ctxt_switches")); }

// Waits until the thread sleeps; once it does, it has nothing left to run.
void AwaitSleep(const std::atomic<pid_t>& tid) {
  while (tid.load() == 0) std::this_thread::yield();
  while (StatusOf(tid, "State").find('S') == std::string::npos) std::this_thread::yield();
}

TEST(WaitingThreads, EpollSeesNoInterruptionUnderTheCpuProvider) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  const int poll = epoll_create1(0);
  const int event = eventfd(0, 0);
  epoll_event wanted{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(epoll_ctl(poll, EPOLL_CTL_ADD, event, &wanted), 0);
  std::atomic<pid_t> tid{0};
  int result = -2;
  std::thread waiting([&] {
    RunRegistered(profiler, "waits", [&] {
      BurnCpu(10'000'000);  // so that its timer has expired before, and its next expiry is near
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      epoll_event got{};
      result = epoll_wait(poll, &got, 1, -1);
    });
  });
  AwaitSleep(tid);
  const std::int64_t before = SwitchesOf(tid);
  RunRegistered(profiler, "works", [] { BurnUntilSampled(300'000'000); });
  EXPECT_EQ(SwitchesOf(tid), before);
  const std::uint64_t one = 1;
  ASSERT_EQ(write(event, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  waiting.join();
  EXPECT_EQ(result, 1) << "epoll_wait was interrupted";
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_GT(profiler.stats().samples, 0U);
  KeptProfiles::Take();
  close(event);
  close(poll);
}

TEST(WaitingThreads, WallTimeOfAWaitCostsNoInterruption) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 200}});
  ASSERT_TRUE(profiler.Start().ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<pid_t> tid{0};
  ssize_t got = -1;
  std::int64_t before_ns = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t after_ns = 0;
  std::thread waiting([&] {
    before_ns = MonotonicNs();
    RunRegistered(profiler, "waits", [&] {
      begin_ns = MonotonicNs();
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      char byte = 0;
      got = read(ends[0], &byte, 1);
      end_ns = MonotonicNs();
    });
    after_ns = MonotonicNs();
  });
  AwaitSleep(tid);
  const std::int64_t switches_before = SwitchesOf(tid);
  // A hundred looks, or as many as a loaded machine does in that time; at least one sample.
  const std::int64_t until_ns = MonotonicNs() + 500'000'000;
  const std::int64_t patience_ns = MonotonicNs() + 20'000'000'000;
  while (MonotonicNs() < until_ns || (profiler.stats().samples == 0 && MonotonicNs() < patience_ns))
    usleep(10'000);
  EXPECT_GT(profiler.stats().samples, 0U);
  const std::int64_t switches = SwitchesOf(tid) - switches_before;
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  waiting.join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(got, 1);
  const Stats stats = profiler.stats();
  EXPECT_EQ(stats.waits_hidden, 0U);
  // Once at most, if the walk lacks the frame pointer.
  EXPECT_LE(switches, static_cast<std::int64_t>(stats.waits_interrupted));
  EXPECT_LE(stats.waits_interrupted, 1U);
  EXPECT_GT(stats.waits_walked, 0U);
  auto wall_ns = SumByName(KeptProfiles::Take(), "wall");
  EXPECT_GE(wall_ns["waits"], end_ns - begin_ns);
  EXPECT_LE(wall_ns["waits"], after_ns - before_ns);
  close(ends[0]);
  close(ends[1]);
}

// What the calling thread waits in, below a frame of fixed or of variable size.
enum class Frames { kFixed, kVariable };
struct OwnStack {
  std::array<void*, 64> addresses{};
  int count = 0;
  std::int64_t waited_ns = 0;
};
__attribute__((noinline)) void WaitHere(const std::function<void()>& wait, OwnStack& own) {
  own.count = backtrace(own.addresses.data(), static_cast<int>(own.addresses.size()));
  const std::int64_t begin_ns = MonotonicNs();
  wait();
  own.waited_ns = MonotonicNs() - begin_ns;
}
__attribute__((noinline)) void Descend(int depth, Frames frames, const std::function<void()>& wait,
                                       OwnStack& own) {
  const std::size_t bytes =
      frames == Frames::kVariable ? 64U * static_cast<unsigned>(depth + 1) : 16;
  auto* const room = static_cast<volatile char*>(
      frames == Frames::kVariable ? __builtin_alloca(bytes) : static_cast<void*>(&own));
  if (depth == 0) {
    WaitHere(wait, own);
  } else {
    Descend(depth - 1, frames, wait, own);
  }
  asm volatile("" : : "r"(room) : "memory");
}

// The callers of WaitHere in the profile's heaviest stack are those that the thread itself sees.
void ExpectStackOf(const KeptProfile& kept, const OwnStack& own) {
  const Profile& profile = kept.profile;
  const int column = testing::ColumnOf(profile, "wall");
  ASSERT_GE(column, 0);
  std::int64_t best_ns = 0;
  std::size_t best = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t ns = profile.Values(i)[static_cast<std::size_t>(column)];
    if (ns > best_ns) best = i;
    best_ns = std::max(best_ns, ns);
  }
  EXPECT_GT(best_ns, own.waited_ns / 2);
  std::vector<std::uint64_t> callers;
  for (const Frame& frame : testing::FramesOf(profile, profile.samples[best]))
    callers.push_back(frame.address);
  // The first is WaitHere's own, where it stands at another call.
  std::vector<std::uint64_t> expected;
  for (int i = 1; i < own.count; ++i)
    expected.push_back(reinterpret_cast<std::uint64_t>(own.addresses[static_cast<std::size_t>(i)]) -
                       1);
  ASSERT_GT(expected.size(), 12U);
  const auto found = std::search(callers.begin(), callers.end(), expected.begin(), expected.end());
  EXPECT_NE(found, callers.end()) << ::testing::PrintToString(callers) << "\n"
                                  << ::testing::PrintToString(expected);
}

class StacksOfWaits : public ::testing::TestWithParam<std::pair<const char*, Frames>> {};
INSTANTIATE_TEST_SUITE_P(
    Waits, StacksOfWaits,
    ::testing::Values(std::pair("poll", Frames::kFixed), std::pair("poll", Frames::kVariable),
                      std::pair("read", Frames::kFixed), std::pair("read", Frames::kVariable),
                      std::pair("sleep", Frames::kFixed), std::pair("sleep", Frames::kVariable),
                      std::pair("condition", Frames::kFixed),
                      std::pair("condition", Frames::kVariable)));

TEST_P(StacksOfWaits, AreTheThreadsOwn) {
  const Frames frames = GetParam().second;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> is_ending{false};
  std::mutex mutex;
  std::condition_variable condition;
  const std::function<void()> waits[] = {
      // A place that needs the frame pointer is interrupted, once.
      [&] {
        const std::int64_t until_ns = MonotonicNs() + 300'000'000;
        while (MonotonicNs() < until_ns) poll(nullptr, 0, 100);
      },
      [&] {
        char byte = 0;
        EXPECT_EQ(read(ends[0], &byte, 1), 1);
      },
      [&] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); },
      [&] {
        std::unique_lock lock(mutex);
        condition.wait_for(lock, std::chrono::milliseconds(300), [&] { return is_ending.load(); });
      },
  };
  const std::string_view kind = GetParam().first;
  const std::function<void()>& wait = waits[kind == "poll"    ? 0
                                            : kind == "read"  ? 1
                                            : kind == "sleep" ? 2
                                                              : 3];
  OwnStack own;
  std::atomic<pid_t> tid{0};
  std::thread waiting([&] {
    RunRegistered(profiler, "waits", [&] {
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      Descend(10, frames, wait, own);
    });
  });
  if (kind == "read") {
    AwaitSleep(tid);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  }
  waiting.join();
  const Stats stats = profiler.stats();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_GT(stats.waits_walked, 0U);
  EXPECT_EQ(stats.waits_hidden, 0U);
  const auto kept = KeptProfiles::Take();
  ASSERT_EQ(kept.size(), 1U);
  if (!testing::kIsSanitized) ExpectStackOf(kept[0], own);
  close(ends[0]);
  close(ends[1]);
}

// Its stack is found from outside, too.
TEST(WaitingThreads, TheStackOfACoroutineThatWaitsIsWalked) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  std::thread([&] {
    RunRegistered(profiler, "coroutine", [] {
      constexpr std::size_t kBytes = 256 * 1024;
      void* const stack =
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(stack, MAP_FAILED);
      static ucontext_t caller;
      ucontext_t context;
      ASSERT_EQ(getcontext(&context), 0);
      context.uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = kBytes};
      context.uc_link = &caller;
      const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
      makecontext(&context, wait, 0);
      ASSERT_EQ(swapcontext(&caller, &context), 0);
      munmap(stack, kBytes);
    });
  }).join();
  const Stats stats = profiler.stats();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_LE(stats.waits_interrupted, 1U);
  EXPECT_GT(stats.waits_walked, 0U);
  const auto kept = KeptProfiles::Take();
  ASSERT_EQ(kept.size(), 1U);
  const Profile& profile = kept[0].profile;
  const auto column = static_cast<std::size_t>(testing::ColumnOf(profile, "wall"));
  std::int64_t in_coroutine_ns = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const Frame root = testing::FramesOf(profile, profile.samples[i]).back();
    if (root.is_pseudo() && root.address == static_cast<Address>(PseudoFrame::kCoroutine))
      in_coroutine_ns += profile.Values(i)[column];
  }
  EXPECT_GT(in_coroutine_ns, 200'000'000);
}

}  // namespace
}  // namespace strobe
