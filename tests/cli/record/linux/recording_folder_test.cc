#include "../../../../src/cli/record/linux/recording_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::Contains;
using ::testing::Not;

TEST(RecordingFolderTest, IsReachedBySharedPathUntilItsEnd) {
  std::optional<RecordingFolder> folder(std::in_place);
  ASSERT_TRUE(folder->is_open());
  const std::string shared = folder->shared_path();
  const std::string path = folder->path();
  std::ofstream(shared + "/profile").put('x');
  EXPECT_TRUE(std::filesystem::exists(path + "/profile"));
  folder.reset();
  EXPECT_FALSE(std::filesystem::exists(shared));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

// A program may become another user. Whom it does not know does not come so far.
TEST(RecordingFolderTest, AllWhoReachItMayWrite) {
  const RecordingFolder folder;
  struct stat status {};
  ASSERT_EQ(stat(folder.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 01777U);
  ASSERT_EQ(stat(std::filesystem::path(folder.path()).parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

// Of a process that is killed, as a command that the user has lost patience with.
TEST(RecordingFolderTest, OfAKilledCommandIsFound) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t command = fork();
  if (command == 0) {
    const RecordingFolder folder;
    std::ofstream(folder.path() + "/profile").put('x');
    static_cast<void>(write(ends[1], folder.path().c_str(), folder.path().size()) > 0);
    pause();
  }
  std::array<char, 256> text{};
  ASSERT_GT(read(ends[0], text.data(), text.size() - 1), 0);
  const std::string path = text.data();
  EXPECT_THAT(RecordingFolder::OfKilled(), Not(Contains(path))) << "it still records";
  kill(command, SIGKILL);
  ASSERT_EQ(waitpid(command, nullptr, 0), command);
  EXPECT_THAT(RecordingFolder::OfKilled(), Contains(path));
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  EXPECT_THAT(RecordingFolder::OfKilled(), Not(Contains(path)));
}

}  // namespace
}  // namespace strobe::internal
