#include "../../../src/platform/linux/task_files.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::uint64_t OwnId() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

TEST(TaskFilesTest, ListsTheThreadsOfThisProcess) {
  std::uint64_t other_id = 0;
  std::latch is_named(1);
  std::latch may_end(1);
  std::thread other([&] {
    pthread_setname_np(pthread_self(), "a (name) \n");
    other_id = OwnId();
    is_named.count_down();
    may_end.wait();
  });
  is_named.wait();
  const std::vector<std::uint64_t> threads = ThreadsIn("/proc/self/task");
  EXPECT_THAT(threads, Contains(OwnId()));
  EXPECT_THAT(threads, Contains(other_id));
  EXPECT_EQ(ThreadNameIn("/proc/self/task", other_id), "a (name) ") << "up to the end of the line";
  may_end.count_down();
  other.join();
}

TEST(TaskFilesTest, WhatCannotBeReadIsEmpty) {
  EXPECT_THAT(ThreadsIn("/proc/self/no_such_directory"), IsEmpty());
  EXPECT_EQ(ThreadNameIn("/proc/self/task", 0x3FFFFFFF), "");
}

TEST(TaskFilesTest, WhatRunsIsRunnableAndWhatIsStoppedIsNot) {
  EXPECT_TRUE(IsAnyRunnable("/proc/self/task")) << "this thread runs";
  EXPECT_FALSE(IsAnyRunnable("/proc/self/no_such_directory"));
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_FALSE(IsAnyRunnable("/proc/" + std::to_string(child) + "/task"));
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, &status, 0), child);
}

TEST(TaskFilesTest, OnlyNumbersAreThreads) {
  const testing::TemporaryDirectory directory;
  for (const char* const name : {"12", "9007199254740993", "x", "99999999999999999999999"})
    std::filesystem::create_directory(directory.path() / name);
  EXPECT_THAT(ThreadsIn(directory.path().string()), UnorderedElementsAre(12, 9007199254740993u));
}

}  // namespace
}  // namespace strobe::internal
