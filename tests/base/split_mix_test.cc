#include "strobe/base/split_mix.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// The first numbers of the generator's published reference implementation, from the state 1234567.
TEST(SplitMix64, GivesTheKnownNumbers) {
  std::uint64_t state = 1234567;
  EXPECT_EQ(SplitMix64(state), 6457827717110365317U);
  EXPECT_EQ(SplitMix64(state), 3203168211198807973U);
  EXPECT_EQ(SplitMix64(state), 9817491932198370423U);
}

}  // namespace
}  // namespace strobe::internal
