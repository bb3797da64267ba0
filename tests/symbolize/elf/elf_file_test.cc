#include "../../../src/symbolize/elf/elf_file.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "../elf_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::ElfBytes;

// A file and what is read of it. The file stays.
struct OpenedElf {
  explicit OpenedElf(Bytes content)
      : bytes(std::move(content)),
        source(std::as_bytes(std::span(bytes))),
        file(ElfFile::Open(source)) {}
  OpenedElf(const OpenedElf&) = delete;
  OpenedElf& operator=(const OpenedElf&) = delete;

  const Bytes bytes;
  const SpanSource source;
  const std::optional<ElfFile> file;
};

// Code at 0x1000, which begins with f and g.
ElfBytes SmallElf(std::uint32_t table = ElfBytes::kSymtab) {
  ElfBytes elf;
  elf.segments.push_back({.offset = 0x100, .address = 0x1100, .bytes = 0x80});
  elf.AddBuildId({0xAB, 0xCD});
  elf.Add({.name = ".text",
           .flags = ElfBytes::kLoaded | ElfBytes::kExecutable,
           .address = 0x1000,
           .content = Bytes(0x40, 0x90)});
  elf.AddSymbols(table, {{.name = "f", .value = 0x1000, .bytes = 0x10, .section = 2},
                         {.name = "g", .value = 0x1010, .bytes = 0x10, .section = 2}});
  return elf;
}

TEST(ElfFileTest, KnowsItsBuildIdAndItsFunctions) {
  const OpenedElf opened(SmallElf().File());
  ASSERT_TRUE(opened.file.has_value());
  EXPECT_EQ(opened.file->build_id(), "abcd");
  EXPECT_EQ(opened.file->architecture(), Architecture::kX86_64);
  EXPECT_EQ(opened.file->symbols(), ElfFile::Symbols::kFull);
  const FunctionTable functions = opened.file->ReadFunctions();
  EXPECT_EQ(functions.Find(0x1008), "f");
  EXPECT_EQ(functions.Find(0x1010), "g");
  EXPECT_EQ(functions.Find(0x1020), "");
}

TEST(ElfFileTest, SaysWhichSymbolsItHas) {
  const OpenedElf dynamic(SmallElf(ElfBytes::kDynsym).File());
  EXPECT_EQ(dynamic.file->symbols(), ElfFile::Symbols::kDynamic);
  EXPECT_EQ(dynamic.file->ReadFunctions().Find(0x1000), "f");
  ElfBytes stripped;
  stripped.AddBuildId({1});
  const OpenedElf none(stripped.File());
  EXPECT_EQ(none.file->symbols(), ElfFile::Symbols::kNone);
  EXPECT_TRUE(none.file->ReadFunctions().empty());
}

TEST(ElfFileTest, SegmentsPutTheFileIntoMemory) {
  const OpenedElf opened(SmallElf().File());
  EXPECT_TRUE(opened.file->Maps(0x100, 0x1100));
  EXPECT_TRUE(opened.file->Maps(0x17F, 0x117F));
  EXPECT_FALSE(opened.file->Maps(0x100, 0x2100));
  EXPECT_EQ(opened.file->AddressAt(0x150), 0x1150u);
  EXPECT_EQ(opened.file->AddressAt(~std::uint64_t{0}), std::nullopt);
}

TEST(ElfFileTest, FrameInformationIsItsIndexOrASection) {
  ElfBytes elf = SmallElf();
  EXPECT_EQ(OpenedElf(elf.File()).file->FindFrameInformation().eh_frame, 0u);
  for (const std::uint32_t type : {ElfBytes::kProgramBits, std::uint32_t{0x70000001}}) {
    ElfBytes without_index = elf;
    without_index.Add({.name = ".eh_frame",
                       .type = type,
                       .flags = ElfBytes::kLoaded,
                       .address = 0x3000,
                       .content = Bytes(24)});
    const auto found = OpenedElf(without_index.File()).file->FindFrameInformation();
    EXPECT_EQ(found.index, 0u);
    EXPECT_EQ(found.eh_frame, 0x3000u);
    EXPECT_EQ(found.eh_frame_bytes, 24u);
  }
  elf.segments.push_back({.type = 0x6474E550, .offset = 0x200, .address = 0x2200, .bytes = 8});
  elf.Add({.name = ".eh_frame", .address = 0x3000, .content = Bytes(24)});
  const auto found = OpenedElf(elf.File()).file->FindFrameInformation();
  EXPECT_EQ(found.index, 0x2200u);
  EXPECT_EQ(found.eh_frame, 0u) << "the index knows";
}

TEST(ElfFileTest, WhatIsMappedIsReadWithTheWholeFirstPage) {
  Bytes file(0x300);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::uint8_t>(i / 16);
  const SpanSource source(std::as_bytes(std::span(file)));
  const auto segment = [](std::uint64_t offset, std::uint64_t address, std::uint64_t bytes) {
    return ElfFile::Segment{.type = 1,
                            .flags = 5,
                            .offset = offset,
                            .address = address,
                            .physical_address = address,
                            .file_size = bytes,
                            .memory_size = bytes,
                            .alignment = 0x1000};
  };
  const ElfFile::Segment segments[] = {segment(0x100, 0x1100, 0x80), segment(0x180, 0x2180, 0x400)};
  const auto read = [&](std::uint64_t address, std::size_t bytes) {
    Bytes content(bytes);
    content.resize(ElfFile::ReadMapped(source, segments, address, content));
    return content;
  };
  EXPECT_EQ(read(0x1110, 1), Bytes{0x11});
  EXPECT_EQ(read(0x1170, 0x100).size(), 0x10u) << "up to the segment's end";
  EXPECT_EQ(read(0x1020, 1), Bytes{0x02}) << "before it";
  EXPECT_EQ(read(0x10F0, 0x100).size(), 0x90u) << "goes on in the segment";
  EXPECT_EQ(read(0x2200, 0x1000).size(), 0x100u) << "up to the file's end";
  EXPECT_EQ(read(0x1200, 1).size(), 0u);
  EXPECT_EQ(read(0x5000, 1).size(), 0u);
}

TEST(ElfFileTest, FindsSectionsByName) {
  ElfBytes elf = SmallElf();
  elf.Add({.name = ".data", .content = {1, 2, 3}});
  elf.Add({.name = ".packed",
           .flags = ElfBytes::kCompressed,
           .content = ElfBytes::Compressed(Bytes(500, 7))});
  const OpenedElf opened(elf.File());
  const auto place = opened.file->FindSection(".data");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(opened.bytes[place->offset + 2], 3);
  EXPECT_EQ(place->bytes, 3u);
  EXPECT_FALSE(place->is_compressed);
  EXPECT_TRUE(opened.file->FindSection(".packed")->is_compressed);
  EXPECT_FALSE(opened.file->FindSection(".dat").has_value());
  EXPECT_EQ(opened.file->ReadSection(".data", 3), (Bytes{1, 2, 3}));
  EXPECT_TRUE(opened.file->ReadSection(".data", 2).empty()) << "more than are wanted";
  EXPECT_TRUE(opened.file->ReadSection(".packed", 500).empty()) << "OpenSection inflates it";
}

TEST(ElfFileTest, FindsDebugSectionsByTheirOldNames) {
  ElfBytes elf = SmallElf();
  elf.Add({.name = ".zdebug_frame", .content = ElfBytes::GnuCompressed(Bytes(500, 7))});
  const OpenedElf opened(elf.File());
  ASSERT_TRUE(opened.file->FindSection(".debug_frame").has_value());
  EXPECT_TRUE(opened.file->FindSection(".debug_frame")->is_compressed);
  EXPECT_FALSE(opened.file->FindSection(".debug_info").has_value());
}

TEST(ElfFileTest, OtherFilesAreNone) {
  const Bytes good = SmallElf().File();
  EXPECT_FALSE(OpenedElf({}).file.has_value());
  for (std::size_t size = 0; size < ElfBytes::kHeaderBytes; ++size)
    EXPECT_FALSE(OpenedElf(Bytes(good.begin(), good.begin() + static_cast<int>(size))).file)
        << size;
  for (const std::size_t at : {0, 4, 5, 18}) {  // the mark, the class, the order, the machine
    Bytes bad = good;
    bad[at] = 9;
    EXPECT_FALSE(OpenedElf(bad).file.has_value()) << at;
  }
}

TEST(ElfFileTest, BrokenFilesCostNamesOnly) {
  const Bytes good = SmallElf().File();
  const auto use_all = [](const Bytes& bytes) {
    const OpenedElf opened(bytes);
    if (!opened.file.has_value()) return;
    const FunctionTable functions = opened.file->ReadFunctions();
    EXPECT_LE(functions.Find(0x1000).size(), bytes.size());
    EXPECT_LE(opened.file->ReadSection(".text", 1000).size(), 1000u);
    EXPECT_TRUE(opened.file->ReadLinkageStubs(functions).Find(0x1000).empty());
    const auto place = opened.file->FindSection(".text");
    if (place.has_value() && !opened.file->ReadSection(".text", bytes.size()).empty()) {
      EXPECT_LE(place->offset, bytes.size());
    }
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= 0xFF;
    use_all(bad);
    use_all(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

}  // namespace
}  // namespace strobe::internal
