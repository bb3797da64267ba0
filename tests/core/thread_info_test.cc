#include "strobe/core/thread_info.h"

#include <gtest/gtest.h>

#include <string>

namespace strobe {
namespace {

TEST(ValidUtf8, KeepsWhatIsValid) {
  for (const std::string text : {"", "plain", "\xC3\xA9t\xC3\xA9", "\xE2\x82\xAC",
                                 "\xF0\x9F\x94\xA5", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(ValidUtf8(text), text);
  }
  EXPECT_EQ(ValidUtf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(ValidUtf8, ReplacesEachByteThatIsNot) {
  EXPECT_EQ(ValidUtf8("\xFF"), "?");
  EXPECT_EQ(ValidUtf8("a\x80z"), "a?z");
  EXPECT_EQ(ValidUtf8("\xC3"), "?");                 // cut off
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), "??");            // overlong
  EXPECT_EQ(ValidUtf8("\xE0\x80\xAF"), "???");       // overlong
  EXPECT_EQ(ValidUtf8("\xF0\x80\x80\xAF"), "????");  // overlong
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "???");       // a surrogate
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80"), "????");  // beyond Unicode
  EXPECT_EQ(ValidUtf8("\xE2\x82z"), "??z");          // the next character survives
}

TEST(SanitizedThreadName, TakesAnyBytes) {
  EXPECT_EQ(SanitizedThreadName("worker"), "worker");
  EXPECT_EQ(SanitizedThreadName(""), "");
  EXPECT_EQ(SanitizedThreadName(std::string("a\0b\n\x7F", 5)), "a b  ");
  EXPECT_EQ(SanitizedThreadName("\xFF\xFE"), "??");
}

TEST(SanitizedThreadName, ControlsNoTerminalAndNoDirection) {
  EXPECT_EQ(SanitizedThreadName("\x1B[31mred\x1B]0;title\x07"), " [31mred ]0;title ");
  EXPECT_EQ(SanitizedThreadName("a\xC2\x80z\xC2\x9B"
                                "1m\xC2\xA0"),
            "a z 1m\xC2\xA0");
  // U+061C, U+200E, U+200F, U+202A, U+202E, U+2066, U+2069; and their neighbours.
  for (const char* const character : {"\xD8\x9C", "\xE2\x80\x8E", "\xE2\x80\x8F", "\xE2\x80\xAA",
                                      "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x81\xA9"})
    EXPECT_EQ(SanitizedThreadName(character), " ");
  for (const char* const character :
       {"\xD8\x9D", "\xE2\x80\x8D", "\xE2\x80\x90", "\xE2\x80\xAF", "\xE2\x81\xA5", "\xE2\x81\xAA"})
    EXPECT_EQ(SanitizedThreadName(character), character);
}

TEST(SanitizedThreadName, EndsAtAWholeCharacterWithin63Bytes) {
  EXPECT_EQ(SanitizedThreadName(std::string(100, 'x')), std::string(63, 'x'));
  EXPECT_EQ(SanitizedThreadName(std::string(63, 'x')), std::string(63, 'x'));
  std::string euros;
  for (int i = 0; i < 30; ++i) euros += "\xE2\x82\xAC";
  EXPECT_EQ(SanitizedThreadName(euros), euros.substr(0, 63));
  const std::string shifted = std::string("x").append(euros);
  EXPECT_EQ(SanitizedThreadName(shifted), shifted.substr(0, 61));
  // Every length of the name in front of a four-byte character: never a part of it.
  for (std::size_t length = 55; length < 66; ++length) {
    const std::string name = SanitizedThreadName(std::string(length, 'x') + "\xF0\x9F\x94\xA5");
    EXPECT_LE(name.size(), kMaxThreadNameBytes);
    EXPECT_EQ(name.find('?'), std::string::npos) << length;
    EXPECT_EQ(ValidUtf8(name), name);
  }
}

TEST(StackBounds, EmptyWithoutARange) {
  EXPECT_TRUE(StackBounds{}.empty());
  EXPECT_TRUE((StackBounds{.low = 16, .high = 16}).empty());
  EXPECT_FALSE((StackBounds{.low = 16, .high = 24}).empty());
}

}  // namespace
}  // namespace strobe
