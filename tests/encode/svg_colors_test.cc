#include "../../src/encode/svg/svg_colors.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// tests/readers compares the fills with those of the page.
TEST(SvgColorsTest, AHueAModuleAShadeAName) {
  EXPECT_EQ(FillOfCode(1, "main", false), FillOfCode(0, "main", false)) << "no module: the first";
  EXPECT_EQ(FillOfCode(2, "main", false), FillOfCode(12, "main", false)) << "after the last hue";
  EXPECT_NE(FillOfCode(1, "main", false), FillOfCode(2, "main", false));
  EXPECT_NE(FillOfCode(1, "main", false), FillOfCode(1, "main", true));
  EXPECT_NE(FillOfCode(1, "a", false), FillOfCode(1, "b", false)) << "two of three shades";
}

}  // namespace
}  // namespace strobe::internal
