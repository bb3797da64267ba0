#include "strobe/base/assert.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kLine = __LINE__ + 1;
void AddUp() { STROBE_CHECK(1 + 1 == 3, "sums are wrong"); }

TEST(CheckDeathTest, FailureNamesThePlaceAndTheMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(AddUp(),
               AllOf(HasSubstr("strobe: "),
                     HasSubstr("assert_test.cc:" + std::to_string(kLine) + ": sums are wrong")));
}

TEST(Check, SuccessEvaluatesTheConditionOnce) {
  int evaluations = 0;
  STROBE_CHECK(++evaluations > 0, "never");
  EXPECT_EQ(evaluations, 1);
}

TEST(Check, StandsAloneInAnIfWithoutBraces) {
  bool reached_else = false;
  if (reached_else)
    STROBE_CHECK(false, "never");
  else
    reached_else = true;
  EXPECT_TRUE(reached_else);
}

}  // namespace
}  // namespace strobe
