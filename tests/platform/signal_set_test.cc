#include "strobe/platform/signal_set.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(SignalSet, SignalsAreBitsFromTheFirst) {
  EXPECT_EQ(BitOf(1), 1u);
  EXPECT_EQ(BitOf(64), std::uint64_t{1} << 63);
  EXPECT_TRUE(HasSignal(BitOf(17) | BitOf(64), 64));
  EXPECT_FALSE(HasSignal(BitOf(17) | BitOf(64), 18));
}

TEST(SignalSet, HoldsNoSignalZero) { EXPECT_FALSE(HasSignal(~std::uint64_t{0}, 0)); }

}  // namespace
}  // namespace strobe::internal
