#include "strobe/platform/fork_safe_mutex.h"

#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;

TEST(ForkSafeMutexTest, OneThreadHoldsIt) {
  static constinit ForkSafeMutex<ManualPlatform> mutex;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  int sum = 0;
  const auto add = [&sum] {
    for (int i = 0; i < 1000; ++i) {
      const std::lock_guard lock(mutex);
      ++sum;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(sum, 2000);
}

TEST(ForkSafeMutexTest, AForksChildTakesWhatItsParentHolds) {
  static constinit ForkSafeMutex<ManualPlatform> mutex;
  ManualPlatform::Reset();
  mutex.lock();
  ManualPlatform::Fork();
  ASSERT_TRUE(mutex.try_lock()) << "the holder is not in this process";
  EXPECT_FALSE(mutex.try_lock()) << "this process's holder is";
  mutex.unlock();
  mutex.lock();
  mutex.unlock();
  ManualPlatform::Reset();
}

}  // namespace
}  // namespace strobe::internal
