#include "strobe/base/amounts.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(SaturatedSumTest, StaysInItsRange) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(SaturatedSum(2, -5), -3);
  EXPECT_EQ(SaturatedSum(Limits::max(), 1), Limits::max());
  EXPECT_EQ(SaturatedSum(1, Limits::max()), Limits::max());
  EXPECT_EQ(SaturatedSum(Limits::min(), -1), Limits::min());
  EXPECT_EQ(SaturatedSum(-1, Limits::min()), Limits::min());
  EXPECT_EQ(SaturatedSum(Limits::min(), Limits::max()), -1);
}

TEST(MagnitudeTest, TheSmallestNumberHasOne) {
  EXPECT_EQ(Magnitude(7), 7u);
  EXPECT_EQ(Magnitude(-7), 7u);
  EXPECT_EQ(Magnitude(std::numeric_limits<std::int64_t>::min()), std::uint64_t{1} << 63);
}

}  // namespace
}  // namespace strobe
