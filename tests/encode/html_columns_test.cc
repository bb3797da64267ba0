#include "../../src/encode/html/html_columns.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

using ColumnBytes = std::vector<unsigned char>;

ColumnBytes BytesOf(const ColumnWriter& writer) {
  return {writer.bytes().begin(), writer.bytes().end()};
}
ColumnBytes ColumnOf(const std::vector<std::uint64_t>& values) {
  ColumnWriter writer;
  writer.Column(values);
  return BytesOf(writer);
}

TEST(ColumnWriterTest, NumbersOfOneByteAreOnePlane) {
  EXPECT_THAT(ColumnOf({5, 0, 2}), ElementsAre(3, 1, 1, 5, 0, 2));
}

TEST(ColumnWriterTest, LowBytesStandTogetherAndThenTheHighOnes) {
  EXPECT_THAT(ColumnOf({0x1234, 1, 0x5600}), ElementsAre(3, 2, 1, 0x34, 1, 0x00, 0x12, 0, 0x56));
}

TEST(ColumnWriterTest, ACommonDivisorMakesNumbersShorter) {
  EXPECT_THAT(ColumnOf({300, 0, 600}), ElementsAre(3, 1, 0xAC, 0x02, 1, 0, 2));
  EXPECT_THAT(ColumnOf({300, 301}), ElementsAre(2, 2, 1, 0x2C, 0x2D, 1, 1));
}

TEST(ColumnWriterTest, ZerosHaveNoPlanes) {
  EXPECT_THAT(ColumnOf({}), ElementsAre(0, 0, 1));
  EXPECT_THAT(ColumnOf({0, 0, 0}), ElementsAre(3, 0, 1));
}

TEST(ColumnWriterTest, TheLargestNumberFits) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(ColumnOf({kMax}),
              ElementsAre(1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1));
  EXPECT_THAT(ColumnOf({kMax, 1}), ElementsAre(2, 8, 1, 0xFF, 1, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0,
                                               0xFF, 0, 0xFF, 0, 0xFF, 0));
}

TEST(ColumnWriterTest, ALongCountIsAVarint) {
  const ColumnBytes column = ColumnOf(std::vector<std::uint64_t>(200, 1));
  ASSERT_EQ(column.size(), 4U + 200U);
  EXPECT_THAT(ColumnBytes(column.begin(), column.begin() + 5), ElementsAre(0xC8, 0x01, 1, 1, 1));
}

TEST(ColumnWriterTest, TextsHaveZerosBetweenThem) {
  ColumnWriter writer;
  writer.Texts(std::vector<std::string>{"a", "", "bc"});
  EXPECT_THAT(BytesOf(writer), ElementsAre(3, 5, 'a', 0, 0, 'b', 'c'));
  ColumnWriter none;
  none.Texts({});
  EXPECT_THAT(BytesOf(none), ElementsAre(0, 0));
}

TEST(ColumnWriterTest, OneFollowsTheOther) {
  ColumnWriter writer;
  writer.Texts(std::vector<std::string>{""});
  writer.Column(std::vector<std::uint64_t>{7});
  writer.Column({});
  EXPECT_THAT(BytesOf(writer), ElementsAre(1, 0, 1, 1, 7, 1, 0, 0, 1));
}

}  // namespace
}  // namespace strobe::internal
