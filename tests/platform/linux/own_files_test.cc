#include "strobe/platform/linux/own_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/testing/latch.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

using testing::IsOpen;
using testing::OpenNull;

TEST(OwnFilesTest, TheThreadHasNoFileOfTheProgram) {
  const int programs = OpenNull();
  std::thread([&] {
    if (!TakeOwnFiles()) return;
    EXPECT_FALSE(IsOpen(programs));
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
