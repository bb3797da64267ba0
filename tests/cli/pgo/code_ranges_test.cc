#include "../../../src/cli/pgo/code_ranges.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

TEST(CodeRangesTest, AddressesAreSortedAndDistinct) {
  EXPECT_THAT(AddressesIn({{.amount = 1, .begin = 7, .end = 9},
                           {.amount = 2, .begin = 3, .end = 5},
                           {.amount = 0, .begin = 4, .end = 6}}),
              ElementsAre(3, 4, 5, 7, 8));
}

TEST(CodeRangesTest, TheLargestAmountsComeFirst) {
  const std::vector<std::uint64_t> addresses =
      AddressesIn({{.amount = 1, .begin = 0, .end = kMaxReadBytes},
                   {.amount = 5, .begin = kMaxReadBytes, .end = kMaxReadBytes + 1}});
  EXPECT_THAT(addresses, ElementsAre(kMaxReadBytes)) << "there is no room for the other";
}

}  // namespace
}  // namespace strobe::internal
