#include "../../src/locks/absl_mutex.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(AbslMutex, KeepsASecondThreadOutUntilItIsUnlocked) {
  absl::Mutex mutex;
  std::atomic<int> value =
      0;  // ThreadSanitizer does not see the lock of a library built without it
  LockMutex(mutex);
  std::thread waits([&] {
    LockMutex(mutex);
    value = value * 10;
    UnlockMutex(mutex);
  });
  value = 1;
  UnlockMutex(mutex);
  waits.join();
  EXPECT_EQ(value, 10);
}

}  // namespace
}  // namespace strobe::internal
