#include "../../../src/platform/linux/signals/forks.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

int StatusOf(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(ForkCountTest, StaysInOneProcess) {
  const std::uint64_t count = ForkCount();
  EXPECT_GT(count, 0u);
  EXPECT_EQ(ForkCount(), count);
  std::thread([count] { EXPECT_EQ(ForkCount(), count); }).join();
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(StatusOf(child), 0);
  EXPECT_EQ(ForkCount(), count) << "it is not the parent's that changes";
}

TEST(ForkCountTest, EachForkHasAnother) {
  const std::uint64_t count = ForkCount();
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t in_child = ForkCount();
    const bool is_new = in_child > count && ForkCount() == in_child;
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(ForkCount() > in_child ? 0 : 1);
    int status = -1;
    waitpid(grandchild, &status, 0);
    _exit(is_new && status == 0 ? 0 : 1);
  }
  EXPECT_EQ(StatusOf(child), 0);
}

TEST(ForkCountTest, AChildForWhichNoHandlerRanHasAnotherToo) {
  const std::uint64_t count = ForkCount();
  // As clone without flags; the order of its arguments depends on the CPU, but all are 0.
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) _exit(ForkCount() > count ? 0 : 1);
  EXPECT_EQ(StatusOf(child), 0);
}

TEST(ForkCountTest, AnyThreadMayFork) {
  std::thread([] {
    const std::uint64_t count = ForkCount();
    const pid_t child = fork();
    if (child == 0) _exit(ForkCount() > count ? 0 : 1);
    EXPECT_EQ(StatusOf(child), 0);
  }).join();
}

}  // namespace
}  // namespace strobe::internal
