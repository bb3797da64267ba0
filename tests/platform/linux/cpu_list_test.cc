#include "../../../src/platform/linux/cpu_list.h"

#include <cstddef>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

TEST(ParseCpus, ReadsNumbersAndRanges) {
  EXPECT_THAT(ParseCpus("0-2,5"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(ParseCpus("3"), ElementsAre(3));
  EXPECT_THAT(ParseCpus(""), ElementsAre());
  EXPECT_THAT(ParseCpus("x,1-"), ElementsAre());
  EXPECT_THAT(ParseCpus("1--2,3-1"), ElementsAre());
  EXPECT_EQ(ParseCpus("0-2000000000").size(), std::size_t{1} << 13);
}

}  // namespace
}  // namespace strobe::internal
