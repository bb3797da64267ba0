#include "../../../src/platform/linux/signals/loader_mutex.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "../../../src/platform/linux/signals/forks.h"
#include "gtest/gtest.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe::internal {
namespace {

TEST(BriefLockTest, HasOneOwner) {
  BriefLock lock;
  {
    const std::lock_guard guard(lock);
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.LockFor(0));
    EXPECT_FALSE(lock.LockFor(100'000));
  }
  EXPECT_TRUE(lock.LockFor(0));
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
}

TEST(BriefLockTest, KeepsThreadsApart) {
  BriefLock lock;
  std::size_t count = 0;  // not atomic
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const std::lock_guard guard(lock);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 400u);
}

TEST(LoaderMutexTest, IsFreeInAChildThoughAThreadOfTheParentHeldIt) {
  static_cast<void>(ForkCount());
  std::latch has_locked(1);
  std::latch has_forked(1);
  std::thread holder([&] {
    const std::lock_guard guard(LoaderMutex());
    has_locked.count_down();
    has_forked.wait();
  });
  has_locked.wait();
  // A fork would wait for the lock. A clone does not; its arguments after the first are all 0.
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    static_cast<void>(ForkCount());  // as the first use of a profiler asks
    _exit(LoaderMutex().try_lock() ? 0 : 1);
  }
  has_forked.count_down();
  holder.join();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(LoaderMutex().try_lock()) << "its owner has let it go in the parent";
  LoaderMutex().unlock();
}

TEST(LoaderMutexTest, ALoaderInDoubtThatWorksIsUsedAgain) {
  const auto before = LinuxPlatform::Modules();
  DoubtLoader();
  EXPECT_EQ(LinuxPlatform::Modules(), before);
}

}  // namespace
}  // namespace strobe::internal
