#include "../../../../src/cli/ui/terminal.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::IsEmpty;

constexpr std::uint32_t kNoProcess = 0;

TEST(ReadFileOfTest, ReadsAPart) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream(path) << "abcdef";
  EXPECT_EQ(ReadFileOf(kNoProcess, path, 0, 100), "abcdef");
  EXPECT_EQ(ReadFileOf(kNoProcess, path, 2, 3), "cde");
  EXPECT_EQ(ReadFileOf(kNoProcess, path, 6, 3), "");
  EXPECT_EQ(ReadFileOf(kNoProcess, path, ~std::uint64_t{0}, 3), "");
  EXPECT_EQ(ReadFileOf(kNoProcess, path, 0, 0), "");
}

TEST(ReadFileOfTest, OnlyRegularFilesCount) {
  const testing::TemporaryDirectory directory;
  EXPECT_THAT(ReadFileOf(kNoProcess, directory.path().string(), 0, 100), IsEmpty());
  EXPECT_THAT(ReadFileOf(kNoProcess, (directory.path() / "none").string(), 0, 100), IsEmpty());
  const std::filesystem::path target = directory.path() / "target";
  std::ofstream(target) << "text";
  std::filesystem::create_symlink(target, directory.path() / "link");
  EXPECT_THAT(ReadFileOf(kNoProcess, (directory.path() / "link").string(), 0, 100), IsEmpty())
      << "the owner of the directory may have made the link";
}

}  // namespace
}  // namespace strobe::internal
