#include "../../src/encode/proto_reader.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Field 1: the varint 150; field 2: the text "abc"; field 3: fixed64; field 4: fixed32; field 16.
constexpr std::string_view kFields(
    "\x08\x96\x01\x12\x03"
    "abc\x19\1\2\3\4\5\6\7\10\x25\1\2\3\4\x80\x01\x07");

TEST(ProtoReaderTest, ReadsFieldByField) {
  ProtoReader reader(kFields);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1U);
  EXPECT_EQ(reader.number(), 150U);
  EXPECT_FALSE(reader.is_bytes());
  EXPECT_EQ(reader.raw(), "\x08\x96\x01");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 2U);
  EXPECT_TRUE(reader.is_bytes());
  EXPECT_EQ(reader.content(), "abc");
  EXPECT_EQ(reader.raw(),
            "\x12\x03"
            "abc");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 3U);
  EXPECT_FALSE(reader.is_bytes());
  EXPECT_EQ(reader.raw().size(), 9U);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 4U);
  EXPECT_EQ(reader.raw().size(), 5U);
  EXPECT_FALSE(reader.AtEnd());
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 16U);
  EXPECT_EQ(reader.number(), 7U);
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.ok());
}

TEST(ProtoReaderTest, NoBytesAreNoFieldsAndNoError) {
  ProtoReader reader("");
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.ok());
}

TEST(ProtoReaderTest, AMessageThatIsCutInAFieldIsAnError) {
  constexpr std::size_t kEnds[] = {0, 3, 8, 17, 22, 25};  // of whole fields
  for (std::size_t size = 0; size <= kFields.size(); ++size) {
    ProtoReader reader(kFields.substr(0, size));
    while (reader.Next()) {
    }
    EXPECT_EQ(reader.ok(), ::testing::Value(size, ::testing::AnyOfArray(kEnds))) << size;
    EXPECT_FALSE(reader.Next()) << "an error stays";
  }
}

TEST(ProtoReaderTest, ALengthBeyondTheEndIsAnError) {
  for (const std::string_view bytes : {"\x0A\x04"
                                       "abc",
                                       "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
                                       "abc"}) {
    ProtoReader reader(bytes);
    EXPECT_FALSE(reader.Next());
    EXPECT_FALSE(reader.ok());
  }
}

TEST(ProtoReaderTest, GroupsAndUnknownTypesAreErrors) {
  for (const char type : {3, 4, 6, 7}) {
    const std::string bytes = {static_cast<char>(8 | type), 1, 1};
    ProtoReader reader(bytes);
    EXPECT_FALSE(reader.Next());
    EXPECT_FALSE(reader.ok()) << static_cast<int>(type);
  }
}

TEST(ProtoReaderTest, AVarintHasAtMostTenBytes) {
  ProtoReader longest("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x05");
  std::uint64_t value = 0;
  ASSERT_TRUE(longest.Varint(value));
  EXPECT_EQ(value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(longest.rest(), "\x05");
  ProtoReader too_long("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
  EXPECT_FALSE(too_long.Varint(value));
  EXPECT_FALSE(too_long.ok());
}

TEST(ProtoReaderTest, AFieldWhoseNumberIsTooLargeIsAnErrorAndNoOtherField) {
  // (2^32 + 1) << 3: what is left of it in 32 bits is field 1.
  ProtoReader reader("\x88\x80\x80\x80\x80\x01\x07");
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.ok());
}

TEST(AppendNumbersTest, TakesPackedNumbersAndOne) {
  // Field 1 packed: 1, 300, -1; field 1 alone: 7; field 1 packed: nothing.
  constexpr std::string_view kNumbers(
      "\x0A\x0D\x01\xAC\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x08\x07\x0A\x00", 19);
  std::vector<std::int64_t> numbers;
  ProtoReader reader(kNumbers);
  while (reader.Next()) EXPECT_TRUE(AppendNumbers(reader, numbers));
  EXPECT_TRUE(reader.ok());
  EXPECT_THAT(numbers, ElementsAre(1, 300, -1, 7));
}

TEST(AppendNumbersTest, ANumberThatIsCutIsAnError) {
  ProtoReader reader("\x0A\x02\x01\x80");
  ASSERT_TRUE(reader.Next());
  std::vector<std::uint64_t> numbers;
  EXPECT_FALSE(AppendNumbers(reader, numbers));
}

}  // namespace
}  // namespace strobe::internal
