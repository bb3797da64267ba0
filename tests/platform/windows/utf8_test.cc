#include "../../../src/platform/windows/utf8.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(Utf8Test, TextsComeBackUnchanged) {
  for (const std::string_view text :
       {std::string_view(), std::string_view("C:\\a file"), std::string_view("a\0b", 3),
        std::string_view("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80")})
    EXPECT_EQ(Utf8FromWide(WideFromUtf8(text)), text);
}

TEST(Utf8Test, CharactersAreUnitsOfUtf16) {
  EXPECT_EQ(WideFromUtf8("\xC3\xA4"), L"\u00E4");
  EXPECT_EQ(WideFromUtf8("\xF0\x9F\x98\x80").size(), 2u) << "a pair";
  EXPECT_EQ(Utf8FromWide(L"\u20AC"), "\xE2\x82\xAC");
}

TEST(Utf8Test, WhatIsNotValidIsReplaced) {
  EXPECT_EQ(WideFromUtf8("a\xFF"), L"a\uFFFD");
  const wchar_t half_of_a_pair[] = {L'a', 0xD800, L'b'};
  EXPECT_EQ(Utf8FromWide({half_of_a_pair, 3}),
            "a\xEF\xBF\xBD"
            "b");
}

}  // namespace
}  // namespace strobe::internal
