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

TEST(ReadOwnFileTest, ReadsAPart) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream(path) << "abcdef";
  EXPECT_EQ(ReadOwnFile(path, 0, 100), "abcdef");
  EXPECT_EQ(ReadOwnFile(path, 2, 3), "cde");
  EXPECT_EQ(ReadOwnFile(path, 6, 3), "");
  EXPECT_EQ(ReadOwnFile(path, ~std::uint64_t{0}, 3), "");
  EXPECT_EQ(ReadOwnFile(path, 0, 0), "");
}

TEST(ReadOwnFileTest, OnlyRegularFilesCount) {
  const testing::TemporaryDirectory directory;
  EXPECT_THAT(ReadOwnFile(directory.path().string(), 0, 100), IsEmpty());
  EXPECT_THAT(ReadOwnFile((directory.path() / "none").string(), 0, 100), IsEmpty());
  const std::filesystem::path target = directory.path() / "target";
  std::ofstream(target) << "text";
  std::filesystem::create_symlink(target, directory.path() / "link");
  EXPECT_THAT(ReadOwnFile((directory.path() / "link").string(), 0, 100), IsEmpty())
      << "the owner of the directory may have made the link";
}

}  // namespace
}  // namespace strobe::internal
