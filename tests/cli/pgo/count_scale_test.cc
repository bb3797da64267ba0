#include "../../../src/cli/pgo/count_scale.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

FunctionSamplesMap WithCount(double count) {
  FunctionSamplesMap functions;
  functions["f"].inlined[{.offset = 1}]["g"].lines[{.offset = 2}].count = count;
  return functions;
}

TEST(CountScaleTest, ASampleHasTheSameCountWhateverItsAmountIs) {
  const CountScale scale(WithCount(12e6), 4e6);
  EXPECT_EQ(scale.Of(4e6), 10u);
  EXPECT_EQ(scale.Of(12e6), 30u);
  EXPECT_EQ(scale.Of(1), 1u) << "less than a tenth of a sample";
  EXPECT_EQ(scale.Of(0), 0u);
}

TEST(CountScaleTest, CountsHave31BitsAndKeepTheirProportions) {
  const CountScale scale(WithCount(4e12), 10);
  EXPECT_EQ(scale.Of(4e12), 2'147'483'647u);
  EXPECT_EQ(scale.Of(1e12), 536'870'912u);
  EXPECT_EQ(scale.Of(1), 1u);
}

}  // namespace
}  // namespace strobe::internal
