#include "../../../src/cli/readers/text_frames.h"

#include <gtest/gtest.h>

namespace strobe::internal {
namespace {

TEST(WordsTest, AreTakenFromBothEnds) {
  std::string_view text = "  one two\tthree ";
  EXPECT_EQ(LastWord(text), "three");
  EXPECT_EQ(FirstWord(text), "one");
  EXPECT_EQ(WithoutSpaces(text), "two");
  EXPECT_EQ(FirstWord(text), "two");
  EXPECT_EQ(FirstWord(text), "");
  EXPECT_EQ(LastWord(text), "");
}

TEST(TakeNumberTest, TakesDigitsOnly) {
  std::int64_t number = 0;
  EXPECT_TRUE(TakeNumber("12", number));
  EXPECT_EQ(number, 12);
  for (const char* text : {"", "-1", "+1", "1x", " 1", "9223372036854775808"})
    EXPECT_FALSE(TakeNumber(text, number)) << text;
}

TEST(TextFramesTest, EqualFramesHaveOneNumber) {
  ProfileBuilder builder;
  TextFrames frames(builder);
  const std::uint32_t named = frames.Named("f");
  EXPECT_EQ(frames.Named("f"), named);
  const std::uint32_t placed = frames.InModule(0x12, "f", "/bin/p");
  EXPECT_NE(placed, named);
  EXPECT_EQ(frames.InModule(0x12, "f", "/bin/p"), placed);
  EXPECT_NE(frames.InModule(0x13, "f", "/bin/p"), placed);
  EXPECT_EQ(builder.profile().modules.at(0).limit, 0x14u);
}

}  // namespace
}  // namespace strobe::internal
