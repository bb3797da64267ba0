#include "strobe/base/page.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(Page, BeginsAtTheLastMultipleOfItsSize) {
  EXPECT_EQ(PageOf(0), 0U);
  EXPECT_EQ(PageOf(kPageBytes - 1), 0U);
  EXPECT_EQ(PageOf(kPageBytes), kPageBytes);
  EXPECT_EQ(PageOf(0x7FFF'1234'5678), 0x7FFF'1234'5000U);
}

TEST(Page, BytesAreRoundedUpToWholePages) {
  EXPECT_EQ(RoundUpToPages(0), 0U);
  EXPECT_EQ(RoundUpToPages(1), kPageBytes);
  EXPECT_EQ(RoundUpToPages(kPageBytes), kPageBytes);
  EXPECT_EQ(RoundUpToPages(kPageBytes + 1), 2 * kPageBytes);
}

}  // namespace
}  // namespace strobe::internal
