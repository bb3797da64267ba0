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

TEST(StackEnd, TwoAreWhole) {
  for (std::size_t i = 0; i < kStackEndCount; ++i) {
    const auto end = static_cast<StackEnd>(i);
    EXPECT_EQ(IsWhole(end), end == StackEnd::kComplete || end == StackEnd::kCoroutine) << i;
  }
  EXPECT_EQ(WalkResult{}.end, StackEnd::kComplete);
}

}  // namespace
}  // namespace strobe
