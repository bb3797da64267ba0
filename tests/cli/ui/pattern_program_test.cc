#include "../../../src/cli/ui/pattern_program.h"

#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(PatternProgramTest, IsAsLongAsItsPattern) {
  const auto length = [](std::string_view text) {
    return PatternProgram::Of(text)->instructions.size();
  };
  EXPECT_EQ(length(""), 1U);
  EXPECT_EQ(length("abc"), 4U);
  EXPECT_EQ(length("a|b"), 5U);
  EXPECT_EQ(length("a*"), 4U);
  EXPECT_EQ(length("a{3}"), 4U);
  EXPECT_EQ(length("(^|a)$"), 6U);
}

TEST(PatternProgramTest, ASetHasRangesOrAllElse) {
  const CharacterSet digits{{{'0', '9'}}};
  EXPECT_TRUE(digits.Has('5'));
  EXPECT_FALSE(digits.Has('a'));
  EXPECT_TRUE((CharacterSet{digits.ranges, true}).Has('a'));
  EXPECT_FALSE((CharacterSet{digits.ranges, true}).Has('9'));
}

TEST(PatternProgramTest, CharactersAreThoseOfUtf8) {
  std::string_view text = "a\u00FC\u20AC\U0001F525\xFF\xC3";
  EXPECT_EQ(TakeCharacter(text), U'a');
  EXPECT_EQ(TakeCharacter(text), U'\u00FC');
  EXPECT_EQ(TakeCharacter(text), U'\u20AC');
  EXPECT_EQ(TakeCharacter(text), U'\U0001F525');
  EXPECT_EQ(TakeCharacter(text), char32_t{0xFF});
  EXPECT_EQ(TakeCharacter(text), char32_t{0xC3});
  EXPECT_TRUE(text.empty());
  EXPECT_TRUE(IsWord('_'));
  EXPECT_FALSE(IsWord(U'\u00FC'));
}

}  // namespace
}  // namespace strobe::internal
