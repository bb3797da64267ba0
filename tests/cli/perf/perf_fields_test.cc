#include "../../../src/cli/perf/perf_fields.h"

#include <cstdint>

#include "../perf_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(PerfWordTest, IsOneOfSeveral) {
  const Bytes bytes = Words({7, 8, ~std::uint64_t{0}});
  EXPECT_EQ(PerfWord(AsBytes(bytes), 0), 7u);
  EXPECT_EQ(PerfWord(AsBytes(bytes), 2), ~std::uint64_t{0});
}

TEST(PerfFieldsTest, TakesFieldsFromTheFront) {
  const Bytes bytes = Join({HalfWord(1), {2, 0}, {3}, Words({4, 5, 6})});
  PerfFields fields(AsBytes(bytes));
  EXPECT_EQ(fields.Take<std::uint32_t>(), 1u);
  EXPECT_EQ(fields.Take<std::uint16_t>(), 2u);
  EXPECT_EQ(fields.TakeBytes(1)[0], std::byte{3});
  EXPECT_EQ(fields.Take<std::uint64_t>(), 4u);
  const std::span<const std::byte> words = fields.TakeWords(2);
  EXPECT_EQ(PerfWord(words, 1), 6u);
  EXPECT_EQ(fields.remaining(), 0u);
  EXPECT_TRUE(fields.ok());
  EXPECT_TRUE(fields.TakeBytes(0).empty());
  EXPECT_TRUE(fields.ok()) << "nothing is always there";
}

TEST(PerfFieldsTest, ATextEndsAtTheFirstZero) {
  const Bytes bytes{'a', 'b', 0, 'c', 'd', 'e'};
  PerfFields fields(AsBytes(bytes));
  EXPECT_EQ(fields.TakeText(4), "ab");
  EXPECT_EQ(fields.TakeText(2), "de") << "no zero is needed";
}

TEST(PerfFieldsTest, PastTheEndEverythingIsZero) {
  const Bytes bytes{1, 2, 3, 4, 5, 6};
  PerfFields fields(AsBytes(bytes));
  EXPECT_EQ(fields.Take<std::uint64_t>(), 0u);
  EXPECT_FALSE(fields.ok());
  EXPECT_EQ(fields.Take<std::uint8_t>(), 0u) << "although it would be there";
  EXPECT_TRUE(fields.TakeBytes(1).empty());
  EXPECT_TRUE(fields.TakeWords(0).empty());
  EXPECT_EQ(fields.TakeText(1), "");
  EXPECT_FALSE(fields.ok());
}

TEST(PerfFieldsTest, CountsThatOverflowAreTooLarge) {
  const Bytes bytes(64);
  for (const std::uint64_t count :
       {std::uint64_t{9}, std::uint64_t{1} << 61, (std::uint64_t{1} << 61) + 1}) {
    PerfFields fields(AsBytes(bytes));
    EXPECT_TRUE(fields.TakeWords(count).empty()) << count;
    EXPECT_FALSE(fields.ok());
  }
  PerfFields fields(AsBytes(bytes));
  EXPECT_TRUE(fields.TakeBytes(~std::uint64_t{0}).empty());
  EXPECT_FALSE(fields.ok());
}

}  // namespace
}  // namespace strobe::internal
