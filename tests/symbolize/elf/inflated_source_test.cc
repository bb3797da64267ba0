#include "../../../src/symbolize/elf/inflated_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../elf_bytes.h"
#include "../memory_files.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::ElfBytes;
using testing::Fixed;
using testing::Join;
using testing::MemoryFile;

// Bytes that zlib can make half as long.
Bytes Content(std::size_t count) {
  Bytes bytes(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 28);
  }
  return bytes;
}

std::shared_ptr<const InflatedSource> OpenSource(const Bytes& section, std::size_t before = 0) {
  return InflatedSource::Open(std::make_shared<MemoryFile>(Join({Bytes(before), section})), before,
                              section.size());
}
bool Holds(const InflatedSource& source, std::uint64_t offset, const Bytes& content,
           std::size_t count) {
  std::vector<std::byte> out(count);
  if (!source.ReadAt(offset, out)) return false;
  const std::byte* const expected = std::as_bytes(std::span(content)).data() + offset;
  return std::equal(out.begin(), out.end(), expected);
}

TEST(InflatedSourceTest, HasTheContent) {
  const Bytes content = Content(1000);
  const auto source = OpenSource(ElfBytes::Compressed(content), 33);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->size(), 1000u);
  EXPECT_TRUE(Holds(*source, 0, content, 1000));
  EXPECT_TRUE(Holds(*source, 999, content, 1));
  EXPECT_TRUE(Holds(*source, 10, content, 5)) << "it can go back";
  EXPECT_TRUE(Holds(*source, 1000, content, 0));
}

TEST(InflatedSourceTest, GoesToAnyPlaceOfALargeContent) {
  const Bytes content = Content(3'500'000);
  const auto source = OpenSource(ElfBytes::Compressed(content));
  ASSERT_NE(source, nullptr);
  for (const std::uint64_t offset : {3'400'000, 2'000'000, 2'100'000, 65'530, 0, 3'499'000})
    EXPECT_TRUE(Holds(*source, offset, content, 1000)) << offset;
  EXPECT_TRUE(Holds(*source, 1'000'000, content, 200'000)) << "over several blocks";
}

TEST(InflatedSourceTest, NothingIsBeyondItsEnd) {
  const auto source = OpenSource(ElfBytes::Compressed(Content(100)));
  ASSERT_NE(source, nullptr);
  std::byte byte{};
  EXPECT_FALSE(source->ReadAt(100, std::span(&byte, 1)));
  EXPECT_FALSE(source->ReadAt(~std::uint64_t{0}, std::span(&byte, 1)));
}

Bytes WithHeader(std::uint32_t type, std::uint64_t size, const Bytes& rest) {
  return Join({Fixed(type), Fixed(std::uint32_t{0}), Fixed(size), Fixed(std::uint64_t{1}), rest});
}

TEST(InflatedSourceTest, RefusesHeadersThatCannotBeTrue) {
  const Bytes rest(50);
  EXPECT_EQ(OpenSource(WithHeader(2, 100, rest)), nullptr) << "not zlib";
  EXPECT_EQ(OpenSource(WithHeader(1, 100, {})), nullptr) << "there is nothing behind it";
  EXPECT_EQ(OpenSource(Bytes(10)), nullptr);
  EXPECT_EQ(OpenSource(WithHeader(1, 60'000, rest)), nullptr) << "zlib cannot make so much of it";
  EXPECT_EQ(OpenSource(WithHeader(1, InflatedSource::kMaxBytes + 1, rest)), nullptr);
  EXPECT_EQ(OpenSource(WithHeader(1, ~std::uint64_t{0}, rest)), nullptr);
}

TEST(InflatedSourceTest, WhatIsBrokenCannotBeRead) {
  const Bytes content = Content(200'000);
  const Bytes section = ElfBytes::Compressed(content);
  const auto cut = OpenSource(
      Bytes(section.begin(), section.begin() + static_cast<std::ptrdiff_t>(section.size() / 2)));
  ASSERT_NE(cut, nullptr);
  EXPECT_TRUE(Holds(*cut, 0, content, 100)) << "what lies before is there";
  EXPECT_FALSE(Holds(*cut, 199'000, content, 100));
  Bytes damaged = section;
  damaged[24] ^= 0xFF;
  const auto broken = OpenSource(damaged);
  ASSERT_NE(broken, nullptr);
  EXPECT_FALSE(Holds(*broken, 0, content, 1));
  const auto too_short =
      OpenSource(Join({WithHeader(1, 300'000, {}), Bytes(section.begin() + 24, section.end())}));
  ASSERT_NE(too_short, nullptr);
  EXPECT_FALSE(Holds(*too_short, 299'000, Content(300'000), 100))
      << "the content is shorter than its header says";
}

}  // namespace
}  // namespace strobe::internal
