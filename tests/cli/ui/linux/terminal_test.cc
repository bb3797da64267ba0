#include "../../../../src/cli/ui/terminal.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kNoProcess = 0;

std::string TextOf(const ByteSource& file) {
  std::string text(file.size(), '\0');
  return file.ReadAt(0, std::as_writable_bytes(std::span(text))) ? text : "cannot be read";
}

TEST(OpenFileOfTest, IsReadAsItGrowsAndOnceItIsRemoved) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream file(path);
  file << "abcdef" << std::flush;
  const std::unique_ptr<ByteSource> source = OpenFileOf(kNoProcess, path);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(TextOf(*source), "abcdef");
  file << "ghi" << std::flush;
  std::filesystem::remove(path);
  EXPECT_EQ(TextOf(*source), "abcdefghi");
  std::array<std::byte, 2> two{};
  EXPECT_TRUE(source->ReadAt(7, two));
  EXPECT_EQ(two[1], std::byte{'i'});
  EXPECT_FALSE(source->ReadAt(8, two));
  EXPECT_FALSE(source->ReadAt(~std::uint64_t{0}, two));
}

TEST(OpenFileOfTest, OnlyRegularFilesCount) {
  const testing::TemporaryDirectory directory;
  EXPECT_EQ(OpenFileOf(kNoProcess, directory.path().string()), nullptr);
  EXPECT_EQ(OpenFileOf(kNoProcess, (directory.path() / "none").string()), nullptr);
  const std::filesystem::path target = directory.path() / "target";
  std::ofstream(target) << "text";
  std::filesystem::create_symlink(target, directory.path() / "link");
  EXPECT_EQ(OpenFileOf(kNoProcess, (directory.path() / "link").string()), nullptr)
      << "the owner of the directory may have made the link";
}

}  // namespace
}  // namespace strobe::internal
