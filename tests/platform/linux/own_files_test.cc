#include "strobe/platform/linux/own_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/base/sanitizers.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/testing/latch.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

using testing::IsOpen;
using testing::OpenNull;

TEST(OwnFilesTest, TheThreadHasNoFileOfTheProgram) {
  const int programs = OpenNull();
  std::thread([&] {
    EXPECT_TRUE(HasProgramFiles());
    const auto program = static_cast<std::uint64_t>(getpid());
    EXPECT_TRUE(SharesFiles(program));
    if (!TakeOwnFiles()) return;
    EXPECT_FALSE(HasProgramFiles());
    EXPECT_FALSE(SharesFiles(program));
    EXPECT_FALSE(IsOpen(programs));
    if (kHasAddressSanitizer || kHasUndefinedBehaviorSanitizer) return;
    const FileIdentity null = FileIdentity::Of(STDIN_FILENO);
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      EXPECT_EQ(FileIdentity::Of(number), null) << number;
    EXPECT_EQ(null, FileIdentity::Of(OpenNull()));
  }).join();
  EXPECT_TRUE(IsOpen(programs));
  close(programs);
}

TEST(OwnFilesTest, TheProgramReachesNoFileOfTheThreadAndOfThoseThatItBegins) {
  if (bool has_own = false; std::thread([&] { has_own = TakeOwnFiles(); }).join(), !has_own)
    GTEST_SKIP() << "the system refuses";
  const FileIdentity output = FileIdentity::Of(STDOUT_FILENO);
  std::thread([&] {
    ASSERT_TRUE(TakeOwnFiles());
    const int own = testing::OpenZero();
    const FileIdentity identity = FileIdentity::Of(own);
    std::thread([&] { EXPECT_EQ(FileIdentity::Of(own), identity); }).join();
    close(STDOUT_FILENO);
  }).join();
  EXPECT_EQ(FileIdentity::Of(STDOUT_FILENO), output) << "what the thread closes is its own";
}

// The lowest number that is free for the program.
int NextNumber() {
  int number = -1;
  WithProgramFiles([&number] {
    number = OpenNull();
    close(number);
  });
  return number;
}

TEST(OwnFilesTest, WhatThreadsOpenWithFilesOfTheirOwnTakesNoNumberOfTheProgram) {
  const int next = NextNumber();
  bool has_own = false;
  const auto open_one = [&] {
    const int own = OpenNull();
    EXPECT_TRUE(IsOpen(own));
    EXPECT_EQ(NextNumber(), next);
    close(own);
  };
  WithOwnFiles([&] {
    has_own = FilesOfThread::Program() != nullptr;
    if (!has_own) return;
    const int shared = OpenNull();
    open_one();
    WithOwnFiles(open_one);
    LinuxPlatform::RunOnOwnThread("strobe-own", [&] {
      EXPECT_TRUE(IsOpen(shared)) << "it shares them";
      open_one();
    }).Join();
    close(shared);
  });
  if (!has_own) GTEST_SKIP() << "the system refuses";
  EXPECT_EQ(NextNumber(), next);
  EXPECT_EQ(FilesOfThread::Program(), nullptr) << "the calling thread has kept its files";
}

TEST(OwnFilesTest, NoPipeOfTheProgramStaysOpen) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  testing::Latch has_taken(1);
  testing::Latch may_end(1);
  bool has_own = false;
  std::thread holder([&] {
    has_own = TakeOwnFiles();
    has_taken.count_down();
    may_end.wait();
  });
  has_taken.wait();
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(has_own ? read(ends[0], &byte, 1) : 0, 0) << "the end of the file";
  may_end.count_down();
  holder.join();
  close(ends[0]);
}

}  // namespace
}  // namespace strobe::internal
