// What the symbolizer reads of a Windows image's file.
#include "../../../src/symbolize/pe/pe_symbols.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "../pe_image_bytes.h"
#include "platform/test_system.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"

namespace strobe::testing {
namespace {

constexpr std::string_view kBuildId = "0123456789abcdeff0f1f2f3f4f5f6f7b";

internal::FunctionTable ReadFunctions(const std::vector<std::uint8_t>& bytes,
                                      std::string_view build_id) {
  const internal::SpanSource source(std::as_bytes(std::span(bytes)));
  const std::optional<internal::PeFile> file =
      internal::PeFile::Open(source, std::string(build_id));
  return file ? file->ReadFunctions() : internal::FunctionTable();
}

// The image's seven symbols, and behind them the names that are long.
class PeSymbolsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSymbolBytes = 18;
  static constexpr std::size_t kSymbols = 0xE00;
  static constexpr std::size_t kStrings = kSymbols + 7 * kSymbolBytes;

  void SetUp() override {
    PutSymbol(0, "main", 0x10, 1, 0x20, 1);
    PutSymbol(1, "main", 0x200, 1, 0x20, 0);  // of the one before: no symbol
    PutLongSymbol(2, "_ZN6strobe7testing4WorkEv", 0x40, 1, 0x20);
    PutSymbol(3, "eight888", 0x80, 1, 0x20, 0);
    PutSymbol(4, "data", 0x90, 2, 0x20, 0);
    PutSymbol(5, "label", 0x90, 1, 0, 0);
    PutSymbol(6, "beyond", 0x900, 1, 0x20, 0);
    image_.Put(kStrings, static_cast<std::uint32_t>(strings_bytes_));
  }

  void PutSymbol(std::size_t number, std::string_view name, std::uint32_t value,
                 std::int16_t section, std::uint16_t type, std::uint8_t auxiliaries) {
    const std::size_t at = kSymbols + number * kSymbolBytes;
    for (std::size_t i = 0; i < name.size(); ++i) image_.Put(at + i, name[i]);
    image_.Put(at + 8, value);
    image_.Put(at + 12, section);
    image_.Put(at + 14, type);
    image_.Put(at + 17, auxiliaries);
  }
  void PutLongSymbol(std::size_t number, std::string_view name, std::uint32_t value,
                     std::int16_t section, std::uint16_t type) {
    PutSymbol(number, "", value, section, type, 0);
    image_.Put(kSymbols + number * kSymbolBytes + 4, static_cast<std::uint32_t>(strings_bytes_));
    for (std::size_t i = 0; i < name.size(); ++i)
      image_.Put(kStrings + strings_bytes_ + i, name[i]);
    strings_bytes_ += name.size() + 1;
  }
  internal::FunctionTable Read(std::string_view build_id = kBuildId) {
    return ReadFunctions(image_.file(), build_id);
  }

  ImageBytes image_;
  std::size_t strings_bytes_ = sizeof(std::uint32_t);
};

TEST_F(PeSymbolsTest, ASectionIsFoundByItsShortOrItsLongName) {
  const auto find = [&](std::string_view name) {
    const internal::SpanSource source(std::as_bytes(std::span(image_.file())));
    const std::optional<internal::PeFile> file =
        internal::PeFile::Open(source, std::string(kBuildId));
    const auto place = file->FindSection(name);
    return place ? std::pair(place->offset, place->bytes)
                 : std::pair(std::uint64_t{0}, std::uint64_t{0});
  };
  image_.Put<std::uint16_t>(ImageBytes::kHeader + 6, 3);  // sections
  const std::string name = ".debug_info";
  const auto place = static_cast<std::uint32_t>(strings_bytes_);
  for (std::size_t i = 0; i < name.size(); ++i) image_.Put(kStrings + place + i, name[i]);
  internal::PeImage::Section section{
      .start = 0x3000, .bytes = 0x123, .file_offset = 0xA00, .file_bytes = 0x400};
  const std::string reference = "/" + std::to_string(place);
  std::copy(reference.begin(), reference.end(), section.name.begin());
  image_.PutSection(2, section);
  EXPECT_EQ(find(name), std::pair(std::uint64_t{0xA00}, std::uint64_t{0x123}));
  EXPECT_EQ(find(".debug").second, 0u) << "the begin of a name";
  EXPECT_EQ(find(".debug_info.dwo").second, 0u);

  section.name = std::to_array({'.', 'd', 'e', 'b', 'u', 'g', '_', 'x'});
  image_.PutSection(2, section);
  EXPECT_EQ(find(".debug_x").second, 0x123u) << "eight letters have no zero behind them";
  section.name = {'/', '9', '9', '9', '9', '9', '9', '9'};
  image_.PutSection(2, section);
  EXPECT_EQ(find(name).second, 0u) << "a place beyond the file";
  section.name = {'/', '4', 'x'};
  image_.PutSection(2, section);
  EXPECT_EQ(find(name).second, 0u) << "a place that is no number";
  section.name = std::to_array({'.', 'd', 'e', 'b', 'u', 'g', '_', 'x'});
  section.file_offset = 0xFFFFFFF0;
  image_.PutSection(2, section);
  EXPECT_EQ(find(".debug_x").second, 0u) << "beyond the file";
}

TEST_F(PeSymbolsTest, NamesCoverTheCodeUpToTheNext) {
  const internal::FunctionTable functions = Read();
  EXPECT_EQ(functions.Find(0x100F), "");
  EXPECT_EQ(functions.Find(0x1010), "main");
  EXPECT_EQ(functions.Find(0x103F), "main");
  EXPECT_EQ(functions.Find(0x1040), "_ZN6strobe7testing4WorkEv");
  EXPECT_EQ(functions.Find(0x1080), "eight888");
  EXPECT_EQ(functions.Find(0x17FF), "eight888") << "neither data nor a label ends it";
  EXPECT_EQ(functions.Find(0x1800), "");
}

TEST_F(PeSymbolsTest, AnotherImagesFileHasNoNames) {
  EXPECT_TRUE(Read("0123").empty());
  EXPECT_TRUE(ReadFunctions({}, "").empty());
}

TEST_F(PeSymbolsTest, WhatSymbolsSayIsNotTrusted) {
  image_.Put(kStrings, std::uint32_t{0xFFFFFFFF});
  EXPECT_EQ(Read().Find(0x1040), "main") << "a name that is not there is none";
  image_.Put(ImageBytes::kHeader + 16, std::uint32_t{0xFFFFFF});
  EXPECT_TRUE(Read().empty()) << "more symbols than the file has bytes";
  image_.Put(ImageBytes::kHeader + 12, std::uint32_t{0xFFFFFFFF});
  image_.Put(ImageBytes::kHeader + 16, std::uint32_t{1});
  EXPECT_TRUE(Read().empty());
}

// An image without names is not read again for every profile; another file in its place is.
TEST_F(PeSymbolsTest, ThatThereAreNoNamesIsKept) {
  const TemporaryDirectory directory;
  const auto write = [&](std::string_view end) {
    std::ofstream file(directory.path() / "image.dll", std::ios::binary);
    file.write(reinterpret_cast<const char*>(image_.file().data()),
               static_cast<std::streamsize>(image_.file().size()));
    file << end;
  };
  const auto count = image_.file()[ImageBytes::kHeader + 16];
  image_.Put(ImageBytes::kHeader + 16, std::uint32_t{0});
  write("");
  Profile profile;
  profile.modules = {{.start = 0x10000,
                      .limit = 0x20000,
                      .load_bias = 0x10000,
                      .path = (directory.path() / "image.dll").string(),
                      .build_id = std::string(kBuildId),
                      .format = ImageFormat::kPe}};
  profile.frames = {{0x11010, 0}};
  PlatformSymbolizer<NativePlatform> symbolizer;
  const auto name = [&] { return symbolizer.Symbolize(profile)->functions.at(0).name; };
  EXPECT_EQ(name(), "image.dll+0x1010");
  const std::size_t kept_bytes = symbolizer.cached_bytes();
  EXPECT_GT(kept_bytes, 0u);
  EXPECT_EQ(name(), "image.dll+0x1010");
  EXPECT_EQ(symbolizer.cached_bytes(), kept_bytes);
  image_.Put(ImageBytes::kHeader + 16, std::uint32_t{count});
  write("longer");
  EXPECT_EQ(name(), "main");
}

// A file of a few kilobytes may say that thousands of symbols have the same long name.
TEST_F(PeSymbolsTest, ALongNameIsKeptOnce) {
  constexpr std::uint32_t kCount = 100;
  constexpr std::uint32_t kNameBytes = 20'000;
  std::vector<std::uint8_t> file = image_.file();
  const auto put = [&](std::size_t at, std::uint32_t value) {
    std::memcpy(file.data() + at, &value, sizeof(value));
  };
  file.resize(kSymbols + kCount * kSymbolBytes + sizeof(std::uint32_t) + kNameBytes, 'x');
  put(ImageBytes::kHeader + 16, kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::size_t at = kSymbols + i * kSymbolBytes;
    put(at, 0);
    put(at + 4, sizeof(std::uint32_t));
    put(at + 8, i);
    put(at + 12, 0x200001);  // section 1, a function
    put(at + 16, 2);
  }
  put(kSymbols + kCount * kSymbolBytes, sizeof(std::uint32_t) + kNameBytes);
  const internal::FunctionTable functions = ReadFunctions(file, kBuildId);
  EXPECT_TRUE(functions.Find(0x1000) == std::string(kNameBytes, 'x'));
  EXPECT_LT(functions.memory_bytes(), 3 * kNameBytes);
}

// The same image, and what it exports: two functions of which the first needs a frame, one of
// another image, and data.
class PeExportsTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kExports = 0x2200;

  void SetUp() override {
    image_.PutDirectory(0, kExports, 0x80);
    image_.PutData<std::uint32_t>(kExports + 20, 4);  // addresses
    image_.PutData<std::uint32_t>(kExports + 24, 4);  // names
    image_.PutData<std::uint32_t>(kExports + 28, kExports + 40);
    image_.PutData<std::uint32_t>(kExports + 32, kExports + 56);
    image_.PutData<std::uint32_t>(kExports + 36, kExports + 72);
    constexpr std::array<std::uint32_t, 4> kAddresses = {0x1300, 0x1100, kExports + 80, 0x2100};
    constexpr std::array<std::string_view, 4> kNames = {"Framed", "Leaf", "Other.Function",
                                                        "kData"};
    constexpr std::array<std::uint16_t, 4> kOrdinals = {1, 0, 2, 3};
    for (std::uint32_t i = 0, name = kExports + 80; i < 4; ++i) {
      image_.PutData(kExports + 40 + 4 * i, kAddresses[i]);
      image_.PutData(kExports + 56 + 4 * i, name);
      image_.PutData(kExports + 72 + 2 * i, kOrdinals[i]);
      for (const char c : kNames[i]) image_.PutData(name++, c);
      image_.PutData(name++, '\0');
    }
    constexpr std::array<std::uint32_t, 6> kFrames = {0x1100, 0x1140, 0x2000,
                                                      0x1340, 0x1380, 0x2000};
    for (std::uint32_t i = 0; i < kFrames.size(); ++i) image_.PutData(0x2000 + 4 * i, kFrames[i]);
  }
  internal::FunctionTable Read(std::string_view build_id = kBuildId) {
    const internal::SpanSource source(std::as_bytes(std::span(image_.file())));
    const std::optional<internal::PeFile> file =
        internal::PeFile::Open(source, std::string(build_id));
    return file ? file->ReadExports() : internal::FunctionTable();
  }

  ImageBytes image_;
};

TEST_F(PeExportsTest, NamesCoverTheirOwnFunctionOnly) {
  const internal::FunctionTable functions = Read();
  EXPECT_EQ(functions.Find(0x10FF), "");
  EXPECT_EQ(functions.Find(0x1100), "Framed");
  EXPECT_EQ(functions.Find(0x113F), "Framed");
  EXPECT_EQ(functions.Find(0x1140), "") << "whose code this is no export says";
  EXPECT_EQ(functions.Find(0x1300), "Leaf");
  EXPECT_EQ(functions.Find(0x133F), "Leaf");
  EXPECT_EQ(functions.Find(0x1340), "") << "the next frame information begins";
  EXPECT_EQ(functions.Find(kExports + 80), "") << "the name of another image's function";
  EXPECT_EQ(functions.Find(0x2100), "") << "data";
}

TEST_F(PeExportsTest, WhatTheDirectorySaysIsNotTrusted) {
  EXPECT_TRUE(Read("0123").empty()) << "another image";
  image_.PutData<std::uint16_t>(kExports + 72, 0xFFFF);
  EXPECT_EQ(Read().Find(0x1100), "") << "an ordinal without an address";
  EXPECT_EQ(Read().Find(0x1300), "Leaf");
  image_.PutData<std::uint32_t>(kExports + 24, 0xFFFFFFFF);
  EXPECT_EQ(Read().Find(0x1300), "Leaf") << "more names than there are";
  image_.PutData<std::uint32_t>(kExports + 56 + 4, 0xFFFFFFFF);
  EXPECT_EQ(Read().Find(0x1300), "") << "a name outside of the directory";
  for (const std::uint32_t field : {28, 32, 36}) {
    image_.PutData<std::uint32_t>(kExports + field, 0x100);
    Read();
  }
  image_.PutDirectory(0, kExports, 0xFFFFFFFF);
  EXPECT_TRUE(Read().empty()) << "longer than the file";
}

}  // namespace
}  // namespace strobe::testing
