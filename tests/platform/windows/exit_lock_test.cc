#include "../../../src/platform/windows/exit_lock.h"

#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

bool IsHeldByAnotherThread() {
  bool is_held = false;
  std::thread([&] { is_held = ExitLock().is_held(); }).join();
  return is_held;
}

TEST(ExitLockTest, OneThreadHoldsIt) {
  ASSERT_TRUE(ExitLock::Prepare());
  EXPECT_TRUE(ExitLock::Prepare()) << "once more";
  EXPECT_TRUE(IsHeldByAnotherThread());
  {
    const ExitLock lock;
    EXPECT_TRUE(lock.is_held());
  }
  EXPECT_TRUE(IsHeldByAnotherThread()) << "it is free again";
}

TEST(ExitLockTest, AProcessThatRunsIsNotEnding) { EXPECT_FALSE(IsProcessEnding()); }

}  // namespace
}  // namespace strobe::internal
