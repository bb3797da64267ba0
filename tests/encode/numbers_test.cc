#include "../../src/encode/numbers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(NumbersTest, CountFromOneInTheOrderOfTheFirstUse) {
  Numbers numbers(4);
  EXPECT_THAT(numbers.used(), ::testing::IsEmpty());
  EXPECT_EQ(numbers.Use(3), 1U);
  EXPECT_EQ(numbers.Use(0), 2U);
  EXPECT_EQ(numbers.Use(3), 1U) << "a thing keeps its number";
  EXPECT_EQ(numbers.Use(2), 3U);
  EXPECT_THAT(numbers.used(), ::testing::ElementsAre(3U, 0U, 2U));
}

}  // namespace
}  // namespace strobe::internal
