#include "../../src/process/image.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "../../src/symbolize/images/kept_files.h"
#include "fake_image.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::FakeFiles;
using testing::FakeImage;

Mapping MappingOf(const std::string& path, Address start = 0x7000'0000,
                  const std::string& build_id = "") {
  return {.start = start,
          .limit = start + 0x1000,
          .file_offset = FakeImage::kOffset,
          .path = path,
          .build_id = build_id};
}

class ImageTest : public ::testing::Test {
 protected:
  std::shared_ptr<Image> Find(const std::string& path, const std::string& process = "") {
    return table_.Find(MappingOf(path), process);
  }
  // The entries of a mapping of the image.
  static std::vector<UnwindModules::Entry> Entries(const Image& image, Address floor = 0) {
    std::vector<UnwindModules::Entry> entries;
    const Address bias = 0x7000'0000 - FakeImage::kText;
    Module module;
    module.start = 0x7000'0000;
    module.limit = 0x7000'1000;
    module.load_bias = bias;
    image.AddEntries(module, floor, entries);
    return entries;
  }

  FakeFiles files_;
  ImageTable table_{files_, {}, 2};
};

TEST_F(ImageTest, ItsTablesAreBuiltOnDemand) {
  files_.Write("/lib/a", {.words = 3});
  const auto image = Find("/lib/a");
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->AddressAt(FakeImage::kOffset + 8), FakeImage::kText + 8);
  EXPECT_EQ(image->AddressAt(~std::uint64_t{0}), std::nullopt);
  ASSERT_EQ(Entries(*image).size(), 1u);
  EXPECT_EQ(Entries(*image)[0].table, nullptr);
  EXPECT_EQ(image->memory_bytes(), 0u);
  image->Build(FakeImage::kText);
  const auto entries = Entries(*image);
  ASSERT_NE(entries[0].table, nullptr);
  EXPECT_EQ(entries[0].start, 0x7000'0000u) << "where the process has it";
  EXPECT_EQ(entries[0].table->Find(8).cfa_words(), 3u);
  EXPECT_GT(image->memory_bytes(), 0u);
  EXPECT_TRUE(Entries(*image, 0x7000'0001).empty()) << "none begins below the floor";
  image->Drop();
  EXPECT_EQ(Entries(*image)[0].table, nullptr);
  EXPECT_EQ(image->memory_bytes(), 0u);
  image->Build(0xFFFF'0000);  // no code of the image
  EXPECT_EQ(image->memory_bytes(), 0u);
}

TEST_F(ImageTest, OneFileIsOneImage) {
  files_.Write("/lib/a", {.build_id = 0xAB});
  files_.Write("/lib/copy", {.build_id = 0xAB});
  const auto image = Find("/lib/a");
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->build_id(), "abababab");
  EXPECT_EQ(Find("/lib/a"), image);
  EXPECT_EQ(Find("/lib/copy"), image) << "the same build in another place";
  EXPECT_EQ(table_.Find(MappingOf("/gone", 0x1000, "abababab"), ""), image)
      << "the build id says enough";
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(ImageTest, AFileThatIsWrittenAnewIsAnother) {
  files_.Write("/lib/a", {.words = 2});
  const auto first = Find("/lib/a");
  files_.Write("/lib/a", {.words = 4});
  const auto second = Find("/lib/a");
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, first);
  EXPECT_NE(second->number(), first->number());
}

TEST_F(ImageTest, OtherCodeHasNoImage) {
  for (const char* const path : {"", "//anon", "/memfd:x", "/dev/zero", "[heap]", "/lib/none"})
    EXPECT_EQ(Find(path), nullptr) << path;
  files_.Write("/lib/a", {.build_id = 0xAB});
  EXPECT_EQ(table_.Find(MappingOf("/lib/a", 0x1000, "cdcdcdcd"), ""), nullptr)
      << "another build is mapped";
}

TEST_F(ImageTest, AProcessMayHaveARootOfItsOwn) {
  files_.Write("/lib/a", {.words = 2, .build_id = 1});
  files_.Write("/proc/7/root/lib/a", {.words = 3, .build_id = 2});
  EXPECT_EQ(Find("/lib/a", "7")->build_id(), "02020202");
  EXPECT_EQ(Find("/lib/a")->build_id(), "01010101");
}

TEST_F(ImageTest, AFileThatHasGoneIsFoundByTheProcesssLinkToIt) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) GTEST_SKIP() << "no /proc";
  files_.Write("/proc/self/exe", {.build_id = 0xCD});
  const std::string removed = program + " (deleted)";
  EXPECT_EQ(Find(removed), nullptr) << "the process may have ended";
  const auto image = Find(removed, "self");
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->build_id(), "cdcdcdcd");
  EXPECT_EQ(Find("/other (deleted)", "self"), nullptr);
}

TEST_F(ImageTest, ItsFileIsKeptForNames) {
  files_.Write("/lib/a", {});
  const auto image = Find("/lib/a");
  Module module{.path = "/lib/a", .build_id = {}};
  module.file_version = image->file_version();
  ASSERT_NE(KeptFileOf(module), nullptr);
  EXPECT_EQ(KeptFileOf(module)->identity(), files_.Open("/lib/a")->identity());
  files_.Write("/lib/a", {});
  EXPECT_NE(KeptFileOf(module)->identity(), files_.Open("/lib/a")->identity());
}

TEST_F(ImageTest, TheTableIsFullOfImagesThatAreUsed) {
  for (const char* const path : {"/a", "/b", "/c"}) files_.Write(path, {});
  const auto first = Find("/a");
  auto second = Find("/b");
  EXPECT_EQ(Find("/c"), nullptr);
  second.reset();
  EXPECT_NE(Find("/c"), nullptr) << "one is not used any more";
  EXPECT_EQ(table_.size(), 2u);
}

TEST_F(ImageTest, TrimDropsTheTablesThatWereUsedLeastRecently) {
  for (const char* const path : {"/a", "/b"}) files_.Write(path, {});
  const auto first = Find("/a");
  const auto second = Find("/b");
  for (const auto& image : {first, second}) image->Build(FakeImage::kText);
  first->last_use = 2;
  second->last_use = 1;
  const std::size_t all = table_.memory_bytes();
  EXPECT_TRUE(table_.Trim(all, 5).empty());
  EXPECT_EQ(table_.Trim(all - 1, 5), std::vector<const Image*>{second.get()});
  EXPECT_EQ(second->memory_bytes(), 0u);
  EXPECT_TRUE(table_.Trim(0, 2).empty()) << "it has been used just now";
  EXPECT_EQ(table_.Trim(0, 5), std::vector<const Image*>{first.get()});
}

}  // namespace
}  // namespace strobe::internal
