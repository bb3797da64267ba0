#include "../../../../src/cli/record/linux/running_targets.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <semaphore>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr int kForever = -1;

// Where the system tells of no thread's end, /proc does, each time that it is asked.
constexpr int kMilliseconds = 10;

TEST(RunningTargetsTest, WithoutTargetsThereIsNoEnd) {
  RunningTargets targets({}, {});
  std::vector<pollfd> polled = targets.Polled();
  EXPECT_TRUE(polled.empty());
  EXPECT_FALSE(targets.HaveEnded(polled));
}

TEST(RunningTargetsTest, ProcessesHaveEndedWithTheLast) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const auto start = [&ends] {
    const pid_t child = fork();
    if (child != 0) return child;
    close(ends[1]);
    char byte = 0;
    _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
  };
  const std::array<pid_t, 2> children{start(), start()};
  const std::array<std::uint32_t, 2> ids{static_cast<std::uint32_t>(children[0]),
                                         static_cast<std::uint32_t>(children[1])};
  RunningTargets targets(ids, {});
  std::vector<pollfd> polled = targets.Polled();
  EXPECT_EQ(poll(polled.data(), polled.size(), 0), 0);
  EXPECT_FALSE(targets.HaveEnded(polled));
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  ASSERT_EQ(poll(polled.data(), polled.size(), kForever), 1);
  EXPECT_FALSE(targets.HaveEnded(polled)) << "the other goes on";
  close(ends[1]);
  ASSERT_EQ(poll(polled.data(), polled.size(), kForever), 1) << "the first is told once";
  EXPECT_TRUE(targets.HaveEnded(polled));
  for (const pid_t child : children) EXPECT_EQ(waitpid(child, nullptr, 0), child);
  close(ends[0]);
}

TEST(RunningTargetsTest, AThreadEndsBeforeItsProcess) {
  std::binary_semaphore is_known(0);
  std::binary_semaphore may_end(0);
  std::uint32_t id = 0;
  std::thread thread([&] {
    id = static_cast<std::uint32_t>(syscall(SYS_gettid));
    is_known.release();
    may_end.acquire();
  });
  is_known.acquire();
  RunningTargets targets({}, std::array{id});
  std::vector<pollfd> polled = targets.Polled();
  EXPECT_FALSE(targets.HaveEnded(polled));
  may_end.release();
  thread.join();
  while (!targets.HaveEnded(polled)) poll(polled.data(), polled.size(), kMilliseconds);
  EXPECT_EQ(polled[0].fd, -1);
}

}  // namespace
}  // namespace strobe::internal
