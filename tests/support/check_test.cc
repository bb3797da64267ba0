#include "check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

constexpr int kLine = __LINE__ + 1;
void AddUp() { Check(1 + 1 == 3, "sums are wrong"); }

TEST(CheckDeathTest, FailureNamesThePlaceAndTheMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(AddUp(),
               ::testing::HasSubstr("check_test.cc:" + std::to_string(kLine) + ": sums are wrong"));
}

TEST(CheckTest, WhatHoldsSaysNothing) { Check(true, "never"); }

}  // namespace
}  // namespace strobe::testing
