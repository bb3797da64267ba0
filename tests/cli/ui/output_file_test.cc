#include "../../../src/cli/ui/output_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t CountFiles(const std::filesystem::path& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

TEST(OutputFileTest, HasTheBytes) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "file";
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(WriteFile(path.string(), bytes).ok());
  EXPECT_EQ(Content(path), bytes);
  ASSERT_TRUE(WriteFile(path.string(), "other").ok());
  EXPECT_EQ(Content(path), "other");
  EXPECT_EQ(CountFiles(directory.path()), 1);
}

TEST(OutputFileTest, AnErrorNamesTheFile) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path nowhere = directory.path() / "no" / "file";
  for (const std::filesystem::path& path : {directory.path(), nowhere}) {
    const absl::Status status = WriteFile(path.string(), "text");
    EXPECT_THAT(std::string(status.message()), HasSubstr(path.string()));
  }
}

TEST(OutputFileTest, KeepsWhatItHadWhereTheNewBytesHaveNoRoom) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "file";
  ASSERT_TRUE(WriteFile(path.string(), "what was there").ok());
  {
    const testing::FileSizeLimit limit(1000);
    if (!limit) GTEST_SKIP() << "the system has no limit of a file's size";
    const absl::Status status = WriteFile(path.string(), std::string(10'000, 'x'));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path.string()));
    EXPECT_THAT(std::string(status.message()), HasSubstr("File too large"));
  }
  EXPECT_EQ(Content(path), "what was there");
  EXPECT_EQ(CountFiles(directory.path()), 1);
}

}  // namespace
}  // namespace strobe::internal
