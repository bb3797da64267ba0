#include "../../../src/symbolize/pe/pe_images.h"

#include <algorithm>
#include <iterator>

#include "../memory_files.h"
#include "../pe_image_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

class PeImagesTest : public ::testing::Test {
 protected:
  PeImagesTest() {
    module_.path = "/bin/plugin.dll";
    module_.format = ImageFormat::kPe;
    module_.build_id = "0123456789abcdeff0f1f2f3f4f5f6f7b";
  }
  PeImageSearch Find() { return FindPeImage(module_, files_, search_); }

  Module module_;
  testing::MemoryFiles files_;
  SymbolSearch search_;
};

TEST_F(PeImagesTest, FindsTheFirstFileWithTheBuildId) {
  files_.Write("/bin/plugin.dll", testing::ImageBytes().file());
  const PeImageSearch found = Find();
  EXPECT_TRUE(found.is_file_there);
  ASSERT_TRUE(found.image.has_value());
  EXPECT_EQ(found.image->path, "/bin/plugin.dll");
  EXPECT_NE(found.image->source, nullptr);
}

TEST_F(PeImagesTest, SaysIfAFileWasThere) {
  EXPECT_FALSE(Find().is_file_there);
  files_.Write("/bin/plugin.dll", {1, 2, 3});
  EXPECT_TRUE(Find().is_file_there);
  EXPECT_FALSE(Find().image.has_value());
}

TEST_F(PeImagesTest, AnotherBuildIsSkipped) {
  files_.Write("/bin/plugin.dll", testing::ImageBytes().file());
  files_.Write("/images/plugin.dll", testing::ImageBytes().file());
  search_.image_directories = {"/images"};
  testing::ImageBytes other;
  other.PutData<std::uint32_t>(testing::ImageBytes::kDebugData + 4, 7);
  files_.Write("/bin/plugin.dll", other.file());
  const PeImageSearch found = Find();
  ASSERT_TRUE(found.image.has_value());
  EXPECT_EQ(found.image->path, "/images/plugin.dll");
  module_.build_id = "00";
  EXPECT_FALSE(Find().image.has_value());
}

TEST_F(PeImagesTest, OpensSectionsByName) {
  testing::ImageBytes image;
  PeImage::Section section{
      .start = 0x2000, .bytes = 0x800, .file_offset = 0xA00, .file_bytes = 0x400};
  const char name[8] = {'.', 'd', 'a', 't', 'a', 0, 0, 0};
  std::copy(std::begin(name), std::end(name), section.name.begin());
  image.PutSection(1, section);
  files_.Write("/bin/plugin.dll", image.file());
  const PeImageSearch found = Find();
  ASSERT_TRUE(found.image.has_value());
  SectionBytes data = OpenSection(*found.image, ".data");
  EXPECT_EQ(data.size(), 0x400u);
  EXPECT_EQ(data.TextAt(testing::ImageBytes::kDebugData - 0x2000 + 24), "C:\\build\\plugin.pdb");
  EXPECT_TRUE(OpenSection(*found.image, ".none").empty());
}

}  // namespace
}  // namespace strobe::internal
