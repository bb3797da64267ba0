// A thread that waits is left in peace.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "kept_profiles.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::BurnUntilSampled;
using testing::KeepingProfiler;
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

TEST(WaitingThreads, WallTimeOfAWaitCostsOneInterruption) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer hands out no signal before the read returns";
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
  // Once, to learn where it waits. A return from the handler that costs the thread more than
  // WallTimeProvider::kReturnCostNs, on a machine that steals time, counts as having run;
  // sanitizers are such machines.
  EXPECT_LE(switches, testing::kIsSanitized ? 10 : 3);
  auto wall_ns = SumByName(KeptProfiles::Take(), "wall");
  EXPECT_GE(wall_ns["waits"], end_ns - begin_ns);
  EXPECT_LE(wall_ns["waits"], after_ns - before_ns);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace strobe
