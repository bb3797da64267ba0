#include "../../src/unwind/dwarf_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "support/bytes.h"

namespace strobe::testing {
namespace {

using internal::DwarfReader;

constexpr Address kAddress = 0x1000;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(DwarfReaderTest, ReadsFieldsFromTheFront) {
  const Bytes bytes = Join({{0xFF}, Fixed(std::uint16_t{0x1234}), Fixed(std::int32_t{-2}), {7, 8}});
  DwarfReader reader(bytes, kAddress);
  EXPECT_EQ(reader.Read<std::uint8_t>(), 0xFF);
  EXPECT_EQ(reader.Read<std::uint16_t>(), 0x1234);
  EXPECT_EQ(reader.Read<std::int32_t>(), -2);
  EXPECT_EQ(reader.position(), 7u);
  EXPECT_EQ(reader.address(), kAddress + 7);
  EXPECT_EQ(reader.remaining(), 2u);
  EXPECT_EQ(reader.ReadBytes(2)[1], 8);
  EXPECT_TRUE(reader.ok());
}

TEST(DwarfReaderTest, PastTheEndEverythingIsZero) {
  const Bytes bytes = {1, 2, 3};
  DwarfReader reader(bytes, kAddress);
  EXPECT_EQ(reader.Read<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Read<std::uint8_t>(), 0) << "although a byte would be there";
  EXPECT_EQ(reader.ReadUleb(), 0u);
  EXPECT_EQ(reader.ReadSleb(), 0);
  EXPECT_EQ(reader.ReadPointer(0x1B), 0u);
  EXPECT_TRUE(reader.ReadBytes(1).empty());
  EXPECT_FALSE(reader.ok());
}

TEST(DwarfReaderTest, AnEmptyReaderIsAtItsEnd) {
  DwarfReader reader;
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_TRUE(reader.ReadBytes(0).empty());
  EXPECT_TRUE(reader.ok()) << "nothing is always there";
  EXPECT_EQ(reader.Read<std::uint8_t>(), 0);
  EXPECT_FALSE(reader.ok());
}

TEST(DwarfReaderTest, ReadsLebNumbers) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::uint64_t{1} << 35, kMax}) {
    const Bytes bytes = Uleb(value);
    DwarfReader reader(bytes, 0);
    EXPECT_EQ(reader.ReadUleb(), value);
    EXPECT_EQ(reader.remaining(), 0u);
  }
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{63}, std::int64_t{64}, std::int64_t{-1}, std::int64_t{-64},
        std::int64_t{-65}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const Bytes bytes = Sleb(value);
    DwarfReader reader(bytes, 0);
    EXPECT_EQ(reader.ReadSleb(), value);
    EXPECT_EQ(reader.remaining(), 0u);
  }
}

TEST(DwarfReaderTest, LebNumbersThatAreTooLongLoseTheirHighBits) {
  Bytes bytes(20, 0x80);
  bytes[0] = 0x85;
  bytes.back() = 0x7F;
  DwarfReader reader(bytes, 0);
  EXPECT_EQ(reader.ReadUleb(), 5u);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0u);
  DwarfReader is_signed(bytes, 0);
  EXPECT_EQ(is_signed.ReadSleb(), 5);
  EXPECT_EQ(is_signed.remaining(), 0u);
}

TEST(DwarfReaderTest, LebNumbersWithoutAnEndFail) {
  const Bytes bytes(3, 0xFF);
  DwarfReader reader(bytes, 0);
  reader.ReadUleb();
  EXPECT_FALSE(reader.ok());
  DwarfReader is_signed(bytes, 0);
  is_signed.ReadSleb();
  EXPECT_FALSE(is_signed.ok());
}

TEST(DwarfReaderTest, APartIsAReaderOfItsOwn) {
  const Bytes bytes = {1, 2, 3, 4};
  DwarfReader reader(bytes, kAddress);
  reader.Skip(1);
  DwarfReader part = reader.Sub(2);
  EXPECT_EQ(part.address(), kAddress + 1);
  EXPECT_EQ(part.Read<std::uint16_t>(), 0x0302);
  EXPECT_EQ(part.Read<std::uint8_t>(), 0) << "the next byte is not the part's";
  EXPECT_FALSE(part.ok());
  EXPECT_EQ(reader.Read<std::uint8_t>(), 4);
  EXPECT_TRUE(reader.ok());
}

TEST(DwarfReaderTest, CountsBeyondTheEndFail) {
  const Bytes bytes = {1, 2, 3, 4};
  for (const std::uint64_t count : {std::uint64_t{4}, kMax, kMax - 2}) {
    DwarfReader skipped(bytes, 0);
    skipped.Skip(1);
    skipped.Skip(count);
    EXPECT_FALSE(skipped.ok()) << count;
    DwarfReader part(bytes, 0);
    part.Skip(1);
    EXPECT_EQ(part.Sub(count).remaining(), 0u);
    EXPECT_FALSE(part.ok()) << count;
  }
}

TEST(DwarfReaderTest, SeeksWithinItsBytes) {
  const Bytes bytes = {1, 2, 3};
  DwarfReader reader(bytes, kAddress);
  reader.Seek(2);
  EXPECT_EQ(reader.Read<std::uint8_t>(), 3);
  reader.Seek(0);
  EXPECT_EQ(reader.Read<std::uint8_t>(), 1);
  reader.Seek(3);
  EXPECT_TRUE(reader.ok()) << "the end is a position";
  reader.Seek(4);
  EXPECT_FALSE(reader.ok());
  reader.Seek(0);
  EXPECT_FALSE(reader.ok()) << "a failure stays";
}

Address Pointer(std::uint8_t encoding, const Bytes& bytes, bool* ok = nullptr) {
  DwarfReader reader(bytes, kAddress);
  const Address value = reader.ReadPointer(encoding, 0x500000);
  if (ok != nullptr) *ok = reader.ok();
  return value;
}

TEST(DwarfReaderTest, ReadsPointersInEveryForm) {
  for (const int form : {0x00, 0x04, 0x0C})
    EXPECT_EQ(Pointer(static_cast<std::uint8_t>(form), Fixed(std::uint64_t{0x123456789A})),
              0x123456789Au);
  EXPECT_EQ(Pointer(0x01, Uleb(300)), 300u);
  EXPECT_EQ(Pointer(0x02, Fixed(std::uint16_t{0xFFFE})), 0xFFFEu);
  EXPECT_EQ(Pointer(0x03, Fixed(std::uint32_t{0xFFFFFFFE})), 0xFFFFFFFEu);
  EXPECT_EQ(Pointer(0x09, Sleb(-5)), Address{0} - 5);
  EXPECT_EQ(Pointer(0x0A, Fixed(std::int16_t{-2})), Address{0} - 2);
  EXPECT_EQ(Pointer(0x0B, Fixed(std::int32_t{-2})), Address{0} - 2);
}

TEST(DwarfReaderTest, PointersCountFromTheirBase) {
  EXPECT_EQ(Pointer(0x1B, Fixed(std::int32_t{-16})), kAddress - 16) << "from the pointer itself";
  EXPECT_EQ(Pointer(0x3B, Fixed(std::int32_t{16})), 0x500010u) << "from the data's start";
  EXPECT_EQ(Pointer(0x9B, Fixed(std::int32_t{16})), kAddress + 16) << "indirect: not followed";
  EXPECT_EQ(Pointer(0x1B, Fixed(std::int32_t{0})), 0u) << "a null pointer has no base";
  bool ok = false;
  EXPECT_EQ(Pointer(0xFF, {}, &ok), 0u);
  EXPECT_TRUE(ok) << "a pointer that is left out takes no byte";
}

TEST(DwarfReaderTest, UnknownEncodingsOfPointersFail) {
  for (const int encoding : {0x05, 0x0F, 0x20, 0x40, 0x50, 0x70}) {
    bool ok = true;
    EXPECT_EQ(Pointer(static_cast<std::uint8_t>(encoding), Bytes(16, 1), &ok), 0u);
    EXPECT_FALSE(ok) << encoding;
  }
}

}  // namespace
}  // namespace strobe::testing
