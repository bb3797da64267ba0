#include "../../src/encode/amount_text.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(AmountTextTest, ScalesTimesAndBytes) {
  EXPECT_EQ(AmountText(1'234'567'890, "nanoseconds"), "1.235 s");
  EXPECT_EQ(AmountText(1'500'000, "nanoseconds"), "1.500 ms");
  EXPECT_EQ(AmountText(1'500, "nanoseconds"), "1.500 \u00B5s");
  EXPECT_EQ(AmountText(999, "nanoseconds"), "999 ns");
  EXPECT_EQ(AmountText(0, "nanoseconds"), "0 ns");
  EXPECT_EQ(AmountText(999'999'600, "nanoseconds"), "1.000 s") << "not 1000.000 ms";
  EXPECT_EQ(AmountText(999'999'400, "nanoseconds"), "999.999 ms");
  EXPECT_EQ(AmountText((1 << 20) - 1, "bytes"), "1023.999 KiB");
  EXPECT_EQ(AmountText(12, "microseconds"), "12.000 \u00B5s");
  EXPECT_EQ(AmountText(12, "milliseconds"), "12.000 ms");
  EXPECT_EQ(AmountText(90, "seconds"), "90.000 s");
  EXPECT_EQ(AmountText(1023, "bytes"), "1023 B");
  EXPECT_EQ(AmountText(1536, "bytes"), "1.500 KiB");
  EXPECT_EQ(AmountText(std::int64_t{3} << 30, "bytes"), "3.000 GiB");
}

TEST(AmountTextTest, OtherUnitsAreNotScaled) {
  EXPECT_EQ(AmountText(42, "count"), "42");
  EXPECT_EQ(AmountText(42, ""), "42");
  EXPECT_EQ(AmountText(17'000'000, "widgets"), "17000000 widgets");
}

TEST(AmountTextTest, AmountsBelowZeroAreThoseOfDifferences) {
  EXPECT_EQ(AmountText(-2'000'000, "nanoseconds"), "-2.000 ms");
  EXPECT_EQ(AmountText(-2048, "bytes"), "-2.000 KiB");
  EXPECT_EQ(AmountText(std::numeric_limits<std::int64_t>::min(), "count"), "-9223372036854775808");
}

TEST(MeanTextTest, NeedNotBeWhole) {
  EXPECT_EQ(MeanText(1.5, "count"), "1.5");
  EXPECT_EQ(MeanText(12'345'678, "count"), "12345678");
  EXPECT_EQ(MeanText(1.5e6, "nanoseconds"), "1.500 ms");
  EXPECT_EQ(MeanText(0.25, "nanoseconds"), "0.25 ns");
  EXPECT_EQ(MeanText(0.25, "bytes"), "0.25 B");
  EXPECT_EQ(MeanText(2048, "bytes"), "2.000 KiB");
  EXPECT_EQ(MeanText(0.5, "widgets"), "0.5 widgets");
  EXPECT_EQ(MeanText(1'500, "nanoseconds"), "1.500 \u00B5s");
  EXPECT_EQ(MeanText(0.5, "bytes"), "0.5 B");
  EXPECT_EQ(MeanText(2.5, "count"), "2.5");
  EXPECT_EQ(MeanText(3, "widgets"), "3 widgets");
}

}  // namespace
}  // namespace strobe::internal
