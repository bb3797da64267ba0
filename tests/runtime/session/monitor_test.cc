#include "strobe/runtime/session/monitor.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(MonitorTest, WaiterSeesWhatTheNotifierChanged) {
  Monitor monitor;
  int step = 0;
  std::thread other([&] {
    std::unique_lock lock(monitor);
    monitor.WaitFor([&] { return step == 1; });
    step = 2;
    monitor.NotifyAll();
  });
  {
    std::unique_lock lock(monitor);
    step = 1;
    monitor.NotifyAll();
    EXPECT_TRUE(monitor.WaitFor([&] { return step == 2; }, Monitor::Deadline::max()));
  }
  other.join();
}

TEST(MonitorTest, DeadlineEndsAWaitAndTheLockIsHeldAfterIt) {
  Monitor monitor;
  const Monitor::Deadline deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  bool is_locked = false;
  std::thread other;
  {
    std::unique_lock lock(monitor);
    EXPECT_FALSE(monitor.WaitFor([] { return false; }, deadline));
    EXPECT_GE(std::chrono::steady_clock::now(), deadline);
    other = std::thread([&] {
      const std::lock_guard other_lock(monitor);
      EXPECT_FALSE(is_locked) << "two threads held the lock";
    });
    is_locked = true;
    std::this_thread::yield();
    is_locked = false;
  }
  other.join();
}

TEST(MonitorTest, ConditionThatHoldsNeedsNoWait) {
  Monitor monitor;
  const std::lock_guard lock(monitor);
  EXPECT_TRUE(monitor.WaitFor([] { return true; }, Monitor::Deadline::min()));
}

}  // namespace
}  // namespace strobe::internal
