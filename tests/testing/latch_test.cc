#include "strobe/testing/latch.h"

#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

// Each waits as another one counts down, again and again: a notification that is missed hangs here.
TEST(Latch, WaitsUntilAllHaveCountedDown) {
  constexpr int kRounds = 300;
  constexpr int kThreads = 3;
  for (int round = 0; round < kRounds; ++round) {
    Latch latch(kThreads);
    int arrived = 0;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        {
          const std::lock_guard lock(mutex);
          ++arrived;
        }
        latch.count_down();
      });
    }
    latch.wait();
    {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(arrived, kThreads);
    }
    latch.wait();  // it stays open
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace strobe::testing
