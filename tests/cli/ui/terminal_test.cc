#include "../../../src/cli/ui/terminal.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::IsEmpty;

TEST(TerminalTest, AFileIsNone) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Terminal terminal = FindTerminal();
  const bool is_taken = IsTerminalTaken();
  ::testing::internal::GetCapturedStdout();
  ::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(terminal.is_output);
  EXPECT_FALSE(terminal.shows_output);
  EXPECT_FALSE(terminal.shows_errors);
  EXPECT_EQ(terminal.columns, 0);
  EXPECT_FALSE(is_taken);
}

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
  std::error_code error;
  std::filesystem::create_symlink(target, directory.path() / "link", error);
  if (error) GTEST_SKIP() << "this user may make no links";
  EXPECT_THAT(ReadOwnFile((directory.path() / "link").string(), 0, 100), IsEmpty())
      << "the owner of the directory may have made the link";
}

}  // namespace
}  // namespace strobe::internal
