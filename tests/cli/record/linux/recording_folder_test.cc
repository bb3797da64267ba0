#include "../../../../src/cli/record/linux/recording_folder.h"

#include <fstream>
#include <optional>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

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

}  // namespace
}  // namespace strobe::internal
