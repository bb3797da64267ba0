#include "strobe/runtime/control/lock_by.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/platform/fork_safe_mutex.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

using std::chrono::steady_clock;

template <class Mutex>
class LockByTest : public ::testing::Test {
 protected:
  Mutex mutex_;
};
using LockableTypes = ::testing::Types<std::mutex, ForkSafeMutex<NativePlatform>>;
TYPED_TEST_SUITE(LockByTest, LockableTypes);

TYPED_TEST(LockByTest, TakesAFreeMutexAlsoAtTheDeadline) {
  std::unique_lock lock(this->mutex_, std::defer_lock);
  EXPECT_TRUE(LockBy(lock, steady_clock::now()));
  EXPECT_TRUE(lock.owns_lock());
}

TYPED_TEST(LockByTest, GivesUpAtTheDeadline) {
  const std::lock_guard held(this->mutex_);
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(3);
  std::thread([&] {
    std::unique_lock lock(this->mutex_, std::defer_lock);
    EXPECT_FALSE(LockBy(lock, deadline));
    EXPECT_FALSE(lock.owns_lock());
    EXPECT_GE(steady_clock::now(), deadline);
  }).join();
}

}  // namespace
}  // namespace strobe::internal
