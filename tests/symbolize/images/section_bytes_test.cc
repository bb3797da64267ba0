#include "../../../src/symbolize/images/section_bytes.h"

#include <cstddef>
#include <limits>

#include "../memory_files.h"
#include "gtest/gtest.h"
#include "support/bytes.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::MemoryFile;

constexpr std::uint64_t kFar = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kOnce = SectionBytes::kMaxAtOnce;

Bytes CountingBytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return bytes;
}

TEST(SectionBytesTest, NoSectionHasNoBytes) {
  SectionBytes none;
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.At(0).empty());
  EXPECT_EQ(none.TextAt(0), "");
  Bytes bytes;
  EXPECT_FALSE(none.Read(0, 0, bytes));
}

TEST(SectionBytesTest, APositionCountsFromTheSectionsStart) {
  const Bytes file = CountingBytes(100);
  SectionBytes section(std::make_shared<MemoryFile>(file), 10, 50);
  EXPECT_EQ(section.size(), 50u);
  EXPECT_EQ(section.At(5)[0], file[15]);
  EXPECT_EQ(section.At(5).size(), 45u) << "up to the section's end";
  EXPECT_TRUE(section.At(50).empty());
  EXPECT_TRUE(section.At(kFar).empty());
  Bytes bytes;
  ASSERT_TRUE(section.Read(48, 2, bytes));
  EXPECT_EQ(bytes, Bytes(file.begin() + 58, file.begin() + 60));
  EXPECT_TRUE(section.Read(50, 0, bytes));
  EXPECT_FALSE(section.Read(49, 2, bytes));
  EXPECT_FALSE(section.Read(49, kFar, bytes));
  EXPECT_FALSE(section.Read(kFar, 1, bytes));
}

TEST(SectionBytesTest, APartIsASection) {
  SectionBytes section(std::make_shared<MemoryFile>(CountingBytes(100)), 10, 50);
  SectionBytes part = section.Sub(20, 10);
  EXPECT_EQ(part.size(), 10u);
  EXPECT_EQ(part.At(9)[0], section.At(29)[0]);
  EXPECT_TRUE(part.At(10).empty());
  EXPECT_TRUE(section.Sub(41, 10).empty());
  EXPECT_TRUE(section.Sub(1, kFar).empty());
  EXPECT_TRUE(section.Sub(kFar, 1).empty());
}

TEST(SectionBytesTest, GivesSoManyBytesForCertainWhereverTheyBegin) {
  const Bytes file = CountingBytes(10 * kOnce + 100);
  const auto source = std::make_shared<MemoryFile>(file);
  SectionBytes section(source, 0, file.size());
  for (const std::uint64_t position :
       {std::uint64_t{0}, std::uint64_t{kOnce - 1}, std::uint64_t{kOnce},
        std::uint64_t{9 * kOnce + 50}, std::uint64_t{3}, std::uint64_t{file.size() - 1}}) {
    const auto bytes = section.At(position);
    ASSERT_GE(bytes.size(), std::min<std::uint64_t>(kOnce, file.size() - position));
    EXPECT_EQ(bytes[0], file[position]);
    EXPECT_EQ(bytes.back(), file[position + bytes.size() - 1]);
  }
}

TEST(SectionBytesTest, SeveralPlacesAreReadOnce) {
  const auto source = std::make_shared<MemoryFile>(CountingBytes(4 * kOnce));
  SectionBytes section(source, 0, 4 * kOnce);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t place = 0; place < 4; ++place) section.At(place * kOnce + 5);
  }
  EXPECT_EQ(source->reads(), 4u);
}

TEST(SectionBytesTest, ATextEndsAtItsZeroOrWithTheSection) {
  const Bytes file = {'x', 'a', 'b', 0, 'c', 'd', 'e'};
  SectionBytes section(std::make_shared<MemoryFile>(file), 1, 5);
  EXPECT_EQ(section.TextAt(0), "ab");
  EXPECT_EQ(section.TextAt(2), "");
  EXPECT_EQ(section.TextAt(3), "cd");
  EXPECT_EQ(section.TextAt(5), "");
  SectionBytes large(std::make_shared<MemoryFile>(Bytes(3 * kOnce, 'a')), 0, 3 * kOnce);
  EXPECT_EQ(large.TextAt(1).size(), kOnce);
}

TEST(SectionBytesTest, AFileThatHasBecomeShorterHasNoBytesThere) {
  const auto source = std::make_shared<MemoryFile>(CountingBytes(4 * kOnce), "", kOnce);
  SectionBytes section(source, 0, 4 * kOnce);
  EXPECT_TRUE(section.At(0).empty());
  EXPECT_TRUE(section.At(2 * kOnce).empty());
  EXPECT_EQ(section.TextAt(2 * kOnce), "");
  Bytes bytes;
  EXPECT_FALSE(section.Read(kOnce, 1, bytes));
  EXPECT_TRUE(section.Read(0, 10, bytes));
}

}  // namespace
}  // namespace strobe::internal
