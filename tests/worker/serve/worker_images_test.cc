#include "../../../src/worker/linux/serve/worker_images.h"

#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "process/fake_image.h"

namespace strobe::internal {
namespace {

using testing::FakeFiles;
using testing::FakeImage;

constexpr Address kStart = 0x7000'0000;

Mapping FakeMapping(const std::string& path, Address start = kStart) {
  return {.start = start, .limit = start + 0x1000, .file_offset = FakeImage::kOffset, .path = path};
}

class WorkerImagesTest : public ::testing::Test {
 protected:
  testing::Bytes Read(Address address, std::size_t count) {
    testing::Bytes bytes(count);
    bytes.resize(images_.Read(address, bytes));
    return bytes;
  }

  FakeFiles files_;
  WorkerImages images_{static_cast<std::uint64_t>(getpid()), files_};
};

TEST_F(WorkerImagesTest, DescribesWhatIsMapped) {
  files_.Write("/lib/a", {.build_id = 0xAB});
  const std::vector<Module> modules =
      images_.Describe({FakeMapping("/lib/a"), FakeMapping("/none", 0x1000),
                        FakeMapping("[anon]", 0x2000), FakeMapping("", 0x3000)});
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].start, kStart);
  EXPECT_EQ(modules[0].load_bias, kStart - FakeImage::kText);
  EXPECT_EQ(modules[0].path, "/lib/a");
  EXPECT_EQ(modules[0].build_id, "abababab");
  EXPECT_EQ(modules[0].kind, ModuleKind::kSharedLibrary);
  EXPECT_EQ(modules[0].unwind_address, modules[0].load_bias + 0x200);
}

TEST_F(WorkerImagesTest, TheProgramComesFirst) {
  std::array<char, 4096> path{};
  ASSERT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  files_.Write("/lib/a", {.build_id = 1});
  files_.Write(path.data(), {.build_id = 2});
  const std::vector<Module> modules =
      images_.Describe({FakeMapping("/lib/a"), FakeMapping(path.data(), kStart + 0x10000)});
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[0].kind, ModuleKind::kProgram);
  EXPECT_EQ(modules[0].build_id, "02020202");
}

TEST_F(WorkerImagesTest, ItsBytesAreThoseOfTheFile) {
  const FakeImage image{.build_id = 0xCD};
  files_.Write("/lib/a", image);
  EXPECT_TRUE(Read(kStart, 8).empty()) << "nothing is mapped yet";
  images_.Describe({FakeMapping("/lib/a")});
  const testing::Bytes file = image.File();
  const Address bias = kStart - FakeImage::kText;
  EXPECT_EQ(Read(bias + 0x200, 16), testing::Bytes(file.begin() + 0x200, file.begin() + 0x210));
  EXPECT_EQ(Read(kStart + 0xFFC, 16).size(), 4u) << "up to the segment's end";
  EXPECT_TRUE(Read(kStart + 0x1000, 1).empty());
  EXPECT_TRUE(Read(0, 1).empty());
  EXPECT_TRUE(Read(~Address{0}, 1).empty());
}

TEST_F(WorkerImagesTest, AFileThatIsGoneCanStillBeRead) {
  files_.Write("/lib/a", {.build_id = 0xEF});
  images_.Describe({FakeMapping("/lib/a")});
  files_.Write("/lib/a", {.build_id = 0x11});
  EXPECT_EQ(images_.Describe({FakeMapping("/lib/a")})[0].build_id, "efefefef")
      << "the process has mapped the file that was there";
  EXPECT_FALSE(Read(kStart, 8).empty());
}

TEST_F(WorkerImagesTest, AFileThatIsRemovedStaysTheSameModule) {
  files_.Write("/lib/a", {});
  const std::vector<Module> before = images_.Describe({FakeMapping("/lib/a")});
  files_.Write("/lib/a", {});
  EXPECT_EQ(images_.Describe({FakeMapping("/lib/a (deleted)")}), before);
  Mapping reloaded = FakeMapping("/lib/a");
  reloaded.inode = 7;
  const std::vector<Module> after = images_.Describe({reloaded});
  ASSERT_EQ(after.size(), 1u);
  EXPECT_NE(after[0].file_version, before[0].file_version) << "the new file, at the same place";
}

TEST_F(WorkerImagesTest, AFileThatHasGoneIsFoundByTheProcesssLinkToIt) {
  std::array<char, 4096> path{};
  ASSERT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  const std::string program = path.data();
  files_.Write("/proc/" + std::to_string(getpid()) + "/exe", {.build_id = 0x55});
  const std::vector<Module> modules = images_.Describe({FakeMapping(program + " (deleted)")});
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].path, program);
  EXPECT_EQ(modules[0].kind, ModuleKind::kProgram);
  EXPECT_EQ(modules[0].build_id, "55555555");
}

TEST_F(WorkerImagesTest, AnImageThatIsLoadedElsewhereIsAnother) {
  files_.Write("/lib/a", {.build_id = 0x22});
  images_.Describe({FakeMapping("/lib/a")});
  const std::vector<Module> modules =
      images_.Describe({FakeMapping("/lib/a"), FakeMapping("/lib/a", kStart + 0x100000)});
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_NE(modules[0].load_bias, modules[1].load_bias);
}

TEST_F(WorkerImagesTest, ARootOfTheProcesssOwnComesFirst) {
  files_.Write("/lib/a", {.build_id = 0x33});
  files_.Write("/proc/" + std::to_string(getpid()) + "/root/lib/a", {.build_id = 0x44});
  EXPECT_EQ(images_.Describe({FakeMapping("/lib/a")})[0].build_id, "44444444");
}

}  // namespace
}  // namespace strobe::internal
