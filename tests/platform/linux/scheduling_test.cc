#include "../../../src/platform/linux/scheduling.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/platform/linux/linux_platform.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

void OnOwnThread(std::function<void()> body) {
  auto thread = LinuxPlatform::RunOnOwnThread("own", std::move(body));
  ASSERT_TRUE(thread.IsRunning());
  thread.Join();
}

std::vector<int> OwnCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(Scheduling, AnOwnThreadStaysOnACpuUntilItIsLetGo) {
  OnOwnThread([] {
    const std::vector<int> all = LinuxPlatform::Cpus();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(OwnCpus(), all);
    for (const int cpu : all) {
      ASSERT_TRUE(LinuxPlatform::StayOn(cpu));
      EXPECT_EQ(LinuxPlatform::CurrentCpu(), cpu) << "already";
      EXPECT_EQ(OwnCpus(), std::vector<int>{cpu});
    }
    EXPECT_TRUE(LinuxPlatform::StayOn(kAnyCpu));
    EXPECT_EQ(OwnCpus(), all);
  });
}

// Those that a kept thread begins are not kept.
TEST(Scheduling, WhatAKeptThreadBeginsHasTheCpusOfTheProcess) {
  OnOwnThread([] {
    const std::vector<int> all = LinuxPlatform::Cpus();
    ASSERT_TRUE(LinuxPlatform::StayOn(all.back()));
    OnOwnThread([&] {
      EXPECT_EQ(OwnCpus(), all);
      EXPECT_TRUE(TakeCpusOfProcess());
    });
  });
}

TEST(Scheduling, MoreBusyThreadsThanCpusSaturateTheMachine) {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  const auto count = 2 * static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&] {
      while (!is_over.load(std::memory_order_relaxed)) {
      }
    });
  EXPECT_TRUE(testing::WaitUntil([] { return LinuxPlatform::IsSaturated(); }));
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Scheduling, ACpuThatIsNotThereIsRefused) {
  OnOwnThread([] {
    const std::vector<int> before = OwnCpus();
    for (const int cpu : {1'000'000, 8191, -2}) EXPECT_FALSE(LinuxPlatform::StayOn(cpu)) << cpu;
    EXPECT_EQ(OwnCpus(), before);
  });
}

}  // namespace
}  // namespace strobe::internal
