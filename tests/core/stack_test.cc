#include "strobe/core/stack.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace strobe {
namespace {

TEST(PseudoFrameName, IsDistinctAndInBrackets) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kPseudoFrameCount; ++i) {
    const std::string_view name = PseudoFrameName(static_cast<PseudoFrame>(i));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.starts_with('[') && name.ends_with(']')) << name;
    EXPECT_NE(name, "[unknown]");
  }
  EXPECT_EQ(PseudoFrameName(static_cast<PseudoFrame>(kPseudoFrameCount)), "[unknown]");
}

// Every way in which a stack can end early has its pseudo-frame.
TEST(StackEnd, EachButCompleteHasAPseudoFrame) {
  EXPECT_EQ(kStackEndCount, 1 + static_cast<std::size_t>(PseudoFrame::kNoUnwindInfo) + 1);
  EXPECT_EQ(WalkResult{}.end, StackEnd::kComplete);
}

}  // namespace
}  // namespace strobe
