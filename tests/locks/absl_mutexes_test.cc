#include "../../src/locks/absl_mutexes.h"

#include <thread>

#include "../../src/locks/absl_mutex.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(AbslMutexSampling, IsOffUntilItIsWanted) {
  EXPECT_FALSE(IsSamplingAbslMutexes());
  SetAbslMutexSampling(false);
  EXPECT_FALSE(IsSamplingAbslMutexes());
}

TEST(AbslMutexSampling, IsOnWhileItIsWantedAndMutexesWorkAllTheTime) {
  absl::Mutex mutex;
  int value = 0;
  const auto contend = [&] {
    LockMutex(mutex);
    std::thread other([&] {
      LockMutex(mutex);
      ++value;
      UnlockMutex(mutex);
    });
    UnlockMutex(mutex);
    other.join();
  };
  SetAbslMutexSampling(true);
  EXPECT_TRUE(IsSamplingAbslMutexes());
  contend();
  SetAbslMutexSampling(true);
  EXPECT_TRUE(IsSamplingAbslMutexes()) << "wanted once more";
  SetAbslMutexSampling(false);
  EXPECT_FALSE(IsSamplingAbslMutexes());
  contend();
  EXPECT_EQ(value, 2);
}

}  // namespace
}  // namespace strobe::internal
