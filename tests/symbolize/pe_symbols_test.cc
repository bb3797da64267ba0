// What the symbolizer reads of a Windows image's file.
#include "../../src/symbolize/pe_symbols.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "pe_image_bytes.h"

namespace strobe::testing {
namespace {

constexpr std::string_view kBuildId = "0123456789abcdeff0f1f2f3f4f5f6f7b";

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

  void PutSymbol(std::size_t number, std::string_view name, std::uint32_t value, std::int16_t section, std::uint16_t type,
                 std::uint8_t auxiliaries) {
    const std::size_t at = kSymbols + number * kSymbolBytes;
    for (std::size_t i = 0; i < name.size(); ++i) image_.Put(at + i, name[i]);
    image_.Put(at + 8, value);
    image_.Put(at + 12, section);
    image_.Put(at + 14, type);
    image_.Put(at + 17, auxiliaries);
  }
  void PutLongSymbol(std::size_t number, std::string_view name, std::uint32_t value, std::int16_t section, std::uint16_t type) {
    PutSymbol(number, "", value, section, type, 0);
    image_.Put(kSymbols + number * kSymbolBytes + 4, static_cast<std::uint32_t>(strings_bytes_));
    for (std::size_t i = 0; i < name.size(); ++i) image_.Put(kStrings + strings_bytes_ + i, name[i]);
    strings_bytes_ += name.size() + 1;
  }
  internal::FunctionTable Read(std::string_view build_id = kBuildId) {
    return internal::ReadPeFunctions(internal::SpanSource(std::as_bytes(std::span(image_.file()))), std::string(build_id));
  }

  ImageBytes image_;
  std::size_t strings_bytes_ = sizeof(std::uint32_t);
};

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
  EXPECT_TRUE(internal::ReadPeFunctions(internal::SpanSource({}), "").empty());
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

}  // namespace
}  // namespace strobe::testing
