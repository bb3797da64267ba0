#include "../../../src/symbolize/elf/elf_images.h"

#include <zlib.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "../../../src/symbolize/images/kept_files.h"
#include "../elf_bytes.h"
#include "../memory_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::ElfBytes;
using testing::Fixed;
using ::testing::IsEmpty;
using testing::Join;
using testing::ZeroEnded;

const Bytes kImageId = {0xAB, 0xCD, 0xEF, 0x01};

Bytes FileWithId(const Bytes& id = kImageId) {
  ElfBytes elf;
  elf.AddBuildId(id);
  return elf.File();
}
// Of an image without a build id, whose code is at the file's start.
Bytes FileWithoutId(const Bytes& debug_link = {}) {
  ElfBytes elf;
  elf.segments.push_back({.offset = 0, .address = 0x1000, .bytes = 0x100});
  if (!debug_link.empty()) elf.Add({.name = ".gnu_debuglink", .content = debug_link});
  return elf.File();
}
Bytes LinkTo(std::string_view name, const Bytes& file) {
  Bytes link = ZeroEnded(name);
  link.resize((link.size() + 3) / 4 * 4);
  return Join({link, Fixed(static_cast<std::uint32_t>(
                         crc32(0, file.data(), static_cast<uInt>(file.size()))))});
}

class ElfImagesTest : public ::testing::Test {
 protected:
  ElfImagesTest() {
    module_.path = "/lib/x.so";
    module_.build_id = "abcdef01";
    module_.start = 0x501000;
    module_.limit = 0x502000;
    module_.load_bias = 0x500000;
    search_.debug_directories = {"/debug"};
  }
  std::vector<std::string> Visit(std::size_t most = 100) {
    std::vector<std::string> paths;
    VisitElfImages(module_, files_, search_, [&](ElfImage&& image) {
      paths.push_back(image.path);
      return paths.size() < most;
    });
    return paths;
  }

  Module module_;
  testing::MemoryFiles files_;
  SymbolSearch search_;
};

TEST_F(ElfImagesTest, AnImageIsTheModulesByItsBuildId) {
  const auto opens = [&](const Bytes& file) {
    const SpanSource source(std::as_bytes(std::span(file)));
    return OpenFor(module_, source).has_value();
  };
  EXPECT_TRUE(opens(FileWithId()));
  EXPECT_FALSE(opens(FileWithId({0xAB, 0xCD, 0xEF, 0x02})));
  EXPECT_FALSE(opens(FileWithoutId()));
  EXPECT_FALSE(opens({1, 2, 3}));
  module_.build_id = "";
  EXPECT_TRUE(opens(FileWithoutId()));
  EXPECT_FALSE(opens(FileWithId()));
  module_.start += 0x1000;
  EXPECT_FALSE(opens(FileWithoutId())) << "it maps other bytes there";
}

TEST_F(ElfImagesTest, VisitsTheImageThenItsSeparateFile) {
  EXPECT_THAT(Visit(), IsEmpty());
  files_.Write("/debug/.build-id/ab/cdef01.debug", FileWithId());
  EXPECT_THAT(Visit(), ElementsAre("/debug/.build-id/ab/cdef01.debug")) << "also without the image";
  files_.Write("/lib/x.so", FileWithId());
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so", "/debug/.build-id/ab/cdef01.debug"));
  EXPECT_THAT(Visit(1), ElementsAre("/lib/x.so")) << "until the visitor has enough";
}

TEST_F(ElfImagesTest, AFileThatIsKeptOpenOutlivesItsPath) {
  files_.Write("/lib/x.so", FileWithId());
  const std::shared_ptr<const FileSource> kept = files_.Open("/lib/x.so");
  KeepFile(module_, kept);
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so")) << "once, though its path leads to it, too";
  files_.Write("/lib/x.so", FileWithId({1, 2, 3, 4}));
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so"));
  files_.Remove("/lib/x.so");
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so"));
}

TEST_F(ElfImagesTest, FilesOfOtherBuildsAreSkipped) {
  files_.Write("/lib/x.so", FileWithId({1, 2, 3, 4}));
  files_.Write("/debug/.build-id/ab/cdef01.debug", FileWithId({1, 2, 3, 4}));
  EXPECT_THAT(Visit(), IsEmpty());
}

TEST_F(ElfImagesTest, WithoutABuildIdTheChecksumDecides) {
  module_.build_id = "";
  const Bytes debug = FileWithoutId();
  files_.Write("/lib/x.so", FileWithoutId(LinkTo("x.debug", debug)));
  files_.Write("/lib/x.debug", debug);
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so", "/lib/x.debug"));
  Bytes other = debug;
  other.back() ^= 1;
  files_.Write("/lib/x.debug", other);
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so"));
}

TEST_F(ElfImagesTest, WhatIsFetchedComesLast) {
  std::vector<std::string> asked;
  search_.fetch = [&](const std::string& build_id) {
    asked.push_back(build_id);
    return std::string("/fetched");
  };
  files_.Write("/lib/x.so", FileWithId());
  files_.Write("/fetched", FileWithId());
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so", "/fetched"));
  EXPECT_THAT(asked, ElementsAre("abcdef01"));
  EXPECT_THAT(Visit(1), ElementsAre("/lib/x.so"));
  EXPECT_EQ(asked.size(), 1u) << "it is not fetched for nothing";
  files_.Write("/fetched", FileWithId({1, 2, 3, 4}));
  EXPECT_THAT(Visit(), ElementsAre("/lib/x.so"));
}

TEST_F(ElfImagesTest, OpensAnyElfFile) {
  files_.Write("/any", FileWithoutId());
  files_.Write("/text", {1, 2, 3});
  EXPECT_TRUE(OpenElfImage("/any", files_).has_value());
  EXPECT_FALSE(OpenElfImage("/text", files_).has_value());
  EXPECT_FALSE(OpenElfImage("/none", files_).has_value());
}

TEST_F(ElfImagesTest, SectionsAreInflated) {
  const Bytes content(5000, 7);
  ElfBytes elf;
  elf.Add({.name = ".plain", .content = {1, 2, 3}});
  elf.Add({.name = ".packed",
           .flags = ElfBytes::kCompressed,
           .content = ElfBytes::Compressed(content)});
  elf.Add({.name = ".zdebug_info", .content = ElfBytes::GnuCompressed(content)});
  elf.Add({.name = ".broken", .flags = ElfBytes::kCompressed, .content = {1, 2, 3}});
  elf.Add({.name = ".zdebug_line", .content = {'Z', 'L', 'I', 'B', 0}});
  files_.Write("/x", elf.File());
  const std::optional<ElfImage> image = OpenElfImage("/x", files_);
  ASSERT_TRUE(image.has_value());
  Bytes bytes;
  ASSERT_TRUE(OpenSection(*image, ".plain", files_).Read(0, 3, bytes));
  EXPECT_EQ(bytes, (Bytes{1, 2, 3}));
  const SectionBytes packed = OpenSection(*image, ".packed", files_);
  ASSERT_TRUE(packed.Read(0, packed.size(), bytes));
  EXPECT_EQ(bytes, content);
  const SectionBytes old = OpenSection(*image, ".debug_info", files_);
  ASSERT_TRUE(old.Read(0, old.size(), bytes));
  EXPECT_EQ(bytes, content);
  EXPECT_TRUE(OpenSection(*image, ".broken", files_).empty());
  EXPECT_TRUE(OpenSection(*image, ".debug_line", files_).empty()) << "it is cut off";
  EXPECT_TRUE(OpenSection(*image, ".none", files_).empty());
}

// The head of a section that zstd has compressed, to so many bytes, and what is behind it.
Bytes WithZstdHead(std::uint64_t size, const Bytes& rest) {
  return Join({Fixed(std::uint32_t{2}), Fixed(std::uint32_t{0}), Fixed(size),
               Fixed(std::uint64_t{1}), rest});
}

TEST_F(ElfImagesTest, SectionsThatZstdHasCompressedAreInflatedByTheSystemsLibrary) {
  const Bytes content(5000, 7);
  ElfBytes elf;
  const auto add = [&](const char* name, const Bytes& bytes) {
    elf.Add({.name = name, .flags = ElfBytes::kCompressed, .content = bytes});
  };
  add(".packed", WithZstdHead(content.size(), content));  // MemoryFiles leaves it as it is
  add(".longer", WithZstdHead(content.size() - 1, content));
  add(".large", WithZstdHead(kMaxWholeBytes + 1, content));
  add(".wrong", WithZstdHead(~std::uint64_t{0}, content));
  add(".head", WithZstdHead(content.size(), {}));
  files_.Write("/x", elf.File());
  const std::optional<ElfImage> image = OpenElfImage("/x", files_);
  ASSERT_TRUE(image.has_value());
  const SectionBytes packed = OpenSection(*image, ".packed", files_);
  Bytes bytes;
  ASSERT_TRUE(packed.Read(0, packed.size(), bytes));
  EXPECT_EQ(bytes, content);
  for (const char* name : {".longer", ".large", ".wrong", ".head"})
    EXPECT_TRUE(OpenSection(*image, name, files_).empty()) << name;
  EXPECT_TRUE(OpenSection(*image, ".packed", NoSymbolFiles()).empty()) << "no library";
}

}  // namespace
}  // namespace strobe::internal
