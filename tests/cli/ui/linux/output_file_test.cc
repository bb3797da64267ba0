#include "../../../../src/cli/ui/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

constexpr uid_t kOther = 12345;  // no user of this name need exist

std::string BytesIn(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OutputFileOnLinuxTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string Path(const char* name) const {
    return (directory_.path() / name).string();
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(OutputFileOnLinuxTest, AFileKeepsItsModeAndItsOwner) {
  const std::string path = Path("file");
  ASSERT_TRUE(WriteFile(path, "old").ok());
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const bool is_others = chown(path.c_str(), kOther, kOther) == 0;  // root may
  ASSERT_TRUE(WriteFile(path, "new").ok());
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  EXPECT_EQ(status.st_uid, is_others ? kOther : geteuid());
  EXPECT_EQ(BytesIn(path), "new");
}

TEST_F(OutputFileOnLinuxTest, AnOwnLinkIsFollowedAlsoWhereNothingIsThereYet) {
  ASSERT_EQ(symlink("target", Path("link").c_str()), 0);
  for (const char* bytes : {"first", "second"}) {
    ASSERT_TRUE(WriteFile(Path("link"), bytes).ok());
    EXPECT_EQ(BytesIn(Path("target")), bytes);
    EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  }
}

TEST_F(OutputFileOnLinuxTest, ALinkOfAnotherUserIsReplaced) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  for (const char* target : {"dangling", "there"}) {
    ASSERT_TRUE(WriteFile(Path("there"), "precious").ok());
    std::filesystem::remove(Path("link"));
    ASSERT_EQ(symlink(target, Path("link").c_str()), 0);
    ASSERT_EQ(lchown(Path("link").c_str(), kOther, kOther), 0);
    ASSERT_TRUE(WriteFile(Path("link"), "new").ok());
    EXPECT_FALSE(std::filesystem::is_symlink(Path("link")));
    EXPECT_EQ(BytesIn(Path("link")), "new");
    EXPECT_FALSE(std::filesystem::exists(Path("dangling")));
    EXPECT_EQ(BytesIn(Path("there")), "precious");
  }
}

TEST_F(OutputFileOnLinuxTest, APipeIsWritten) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(WriteFile(Path("pipe"), "text").ok());
  std::array<char, 16> text{};
  EXPECT_EQ(read(reader, text.data(), text.size()), 4);
  EXPECT_STREQ(text.data(), "text");
  close(reader);
}

TEST_F(OutputFileOnLinuxTest, AFullDeviceSaysSo) {
  const absl::Status status = WriteFile("/dev/full", "text");
  EXPECT_NE(std::string(status.message()).find("No space left on device"), std::string::npos)
      << status;
}

TEST_F(OutputFileOnLinuxTest, AFileThatMayNotBeWrittenStaysAsItIs) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write all";
  ASSERT_TRUE(WriteFile(Path("file"), "old").ok());
  ASSERT_EQ(chmod(Path("file").c_str(), 0400), 0);
  EXPECT_FALSE(WriteFile(Path("file"), "new").ok());
  EXPECT_EQ(BytesIn(Path("file")), "old");
}

TEST_F(OutputFileOnLinuxTest, AFileIsWrittenWhereNoOtherCanBeMade) {
  if (geteuid() == 0) GTEST_SKIP() << "root can make one";
  ASSERT_TRUE(WriteFile(Path("file"), "old").ok());
  ASSERT_EQ(chmod(directory_.path().c_str(), 0500), 0);
  EXPECT_TRUE(WriteFile(Path("file"), "new").ok());
  ASSERT_EQ(chmod(directory_.path().c_str(), 0700), 0);
  EXPECT_EQ(BytesIn(Path("file")), "new");
}

}  // namespace
}  // namespace strobe::internal
