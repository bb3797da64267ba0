#include "strobe/symbolize/pe_image.h"

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <vector>

#include "../pe_image_bytes.h"
#include "strobe/testing/fakes/fake_memory.h"

namespace strobe::testing {
namespace {

using internal::PeImage;

TEST(PeImage, SaysTheSameInMemoryAndInItsFile) {
  const ImageBytes bytes;
  for (const PeImage::Layout layout : {PeImage::Layout::kLoaded, PeImage::Layout::kFile}) {
    const std::optional<PeImage> image = bytes.Open(layout);
    ASSERT_TRUE(image);
    EXPECT_EQ(image->preferred_base, 0x180000000u);
    EXPECT_EQ(image->pdata, 0x2000u);
    EXPECT_EQ(image->pdata_bytes, 24u);
    EXPECT_EQ(image->symbols_offset, 0xE00u);
    EXPECT_EQ(image->symbol_count, 7u);
    EXPECT_EQ(image->build_id, "0123456789abcdeff0f1f2f3f4f5f6f7b");
    EXPECT_EQ(image->debug_file, "C:\\build\\plugin.pdb");
    EXPECT_EQ(image->sections.size(), 2u);
  }
}

// To read another process's memory, or what counts as such, takes long.
TEST(PeImage, ItsHeadersAreReadAtOnce) {
  const ImageBytes bytes;
  FakeMemory file;
  file.Map(0, bytes.file());
  ASSERT_TRUE(PeImage::Open(std::ref(file), PeImage::Layout::kFile));
  EXPECT_EQ(file.reads().size(), 1u);
}

TEST(PeImage, ItsCodeBecomesModules) {
  constexpr Address kBase = 0x7FF000000000;
  const std::vector<Module> modules =
      ImageBytes().Open(PeImage::Layout::kLoaded)->ModulesAt(kBase, "C:\\x.dll");
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].start, kBase + 0x1000);
  EXPECT_EQ(modules[0].limit, kBase + 0x1800);
  EXPECT_EQ(modules[0].file_offset, 0x400u);
  EXPECT_EQ(modules[0].load_bias, kBase);
  EXPECT_EQ(modules[0].path, "C:\\x.dll");
  EXPECT_EQ(modules[0].pdata_address, kBase + 0x2000);
  EXPECT_EQ(modules[0].pdata_bytes, 24u);
}

TEST(PeImage, ItsHeaderTellsAProgramFromALibrary) {
  ImageBytes bytes;
  const auto module = [&] {
    return bytes.Open(PeImage::Layout::kLoaded)->ModulesAt(0x10000, "C:\\x").front();
  };
  EXPECT_EQ(module().kind, ModuleKind::kProgram);
  EXPECT_EQ(module().format, ImageFormat::kPe);
  bytes.Put<std::uint16_t>(ImageBytes::kHeader + 22, 0x2022);
  EXPECT_EQ(module().kind, ModuleKind::kSharedLibrary);
}

TEST(PeImage, FindsBytesInTheFile) {
  const std::optional<PeImage> image = ImageBytes().Open(PeImage::Layout::kFile);
  EXPECT_EQ(image->FileOffset(0x1234), 0x634u);
  EXPECT_EQ(image->FileOffset(0x2000), 0xA00u);
  EXPECT_EQ(image->FileOffset(0x1700), std::nullopt) << "zeros in memory only";
  EXPECT_EQ(image->FileOffset(0x3000), std::nullopt);
}

TEST(PeImage, WithoutDebugInformationTheLinkNamesIt) {
  ImageBytes bytes;
  bytes.PutDirectory(6, 0, 0);
  EXPECT_EQ(bytes.Open(PeImage::Layout::kFile)->build_id, "5f00abcd4000");
  EXPECT_EQ(bytes.Open(PeImage::Layout::kFile)->debug_file, "");
  bytes.PutDirectory(6, 0x7FFFFFF0, 0xFFFFFFFF);
  EXPECT_EQ(bytes.Open(PeImage::Layout::kFile)->build_id, "5f00abcd4000");
  EXPECT_EQ(bytes.Open(PeImage::Layout::kLoaded)->build_id, "5f00abcd4000");
}

TEST(PeImage, OtherFilesAreNone) {
  ImageBytes bytes;
  for (std::size_t readable = 0; readable < 0x80 + 24 + 0xF0 + 2 * 40; readable += 2) {
    EXPECT_FALSE(bytes.Open(PeImage::Layout::kFile, readable)) << readable;
  }
  bytes.Put<std::uint16_t>(ImageBytes::kHeader + 4, 0x14C);
  EXPECT_FALSE(bytes.Open(PeImage::Layout::kFile)) << "for another CPU";
}

// A section that says to reach beyond its image, or begins there.
TEST(PeImage, ModulesStayInTheImage) {
  ImageBytes bytes;
  bytes.PutSection(0, {.start = 0x1000,
                       .bytes = 0xFFFFFFFF,
                       .file_offset = 0x400,
                       .file_bytes = 0x600,
                       .is_code = true});
  bytes.PutSection(1, {.start = 0xFFFFF000,
                       .bytes = 0x1000,
                       .file_offset = 0x400,
                       .file_bytes = 0x600,
                       .is_code = true});
  const std::vector<Module> modules = bytes.Open(PeImage::Layout::kLoaded)->ModulesAt(0x10000, "");
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].limit, 0x14000u);
}

}  // namespace
}  // namespace strobe::testing
