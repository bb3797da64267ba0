#include "../../../src/platform/linux/scheduling.h"

#include <sched.h>

#include <functional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/platform/linux/linux_platform.h"

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

TEST(Scheduling, ACpuThatIsNotThereIsRefused) {
  OnOwnThread([] {
    const std::vector<int> before = OwnCpus();
    for (const int cpu : {1'000'000, 8191, -2}) EXPECT_FALSE(LinuxPlatform::StayOn(cpu)) << cpu;
    EXPECT_EQ(OwnCpus(), before);
  });
}

}  // namespace
}  // namespace strobe::internal
