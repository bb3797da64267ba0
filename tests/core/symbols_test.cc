#include "strobe/core/symbols.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(Symbols, AFrameHasNoNameUntilItIsGivenOne) {
  EXPECT_EQ(FrameSymbols{}.function, FrameSymbols::kNone);
  EXPECT_TRUE(FunctionSymbol{}.resolved);
  EXPECT_TRUE(Symbols{}.frames.empty());
}

}  // namespace
}  // namespace strobe
