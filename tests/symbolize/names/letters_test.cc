#include "../../../src/symbolize/names/letters.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(Letters, AreUtf8) {
  std::string text;
  for (const std::uint32_t c : {0x41U, 0xFCU, 0x20ACU, 0x1F600U}) AppendUtf8(text, c);
  EXPECT_EQ(text, "A\u00FC\u20AC\U0001F600");
  EXPECT_FALSE(IsCodePoint(0xD800) || IsCodePoint(0x110000));
}

// Examples of RFC 3492, section 7.1, with '_' for '-'.
TEST(Letters, AreReadFromPunycode) {
  EXPECT_EQ(FromPunycode("mnchen_3ya"), "m\u00FCnchen");
  EXPECT_EQ(FromPunycode("ihqwcrb4cv8a8dqg056pqjye"),
            "\u4ED6\u4EEC\u4E3A\u4EC0\u4E48\u4E0D\u8BF4\u4E2D\u6587");
  EXPECT_EQ(FromPunycode("MajiKoi5_783gue6qz075azm5e"), "Maji\u3067Koi\u3059\u308B5\u79D2\u524D");
}

TEST(Letters, AreNoneInWhatIsNoPunycode) {
  for (const char* text : {"", "x_!", "x_A", "zzzzzzzzzzzzzzzzzzzz", "a_99999999999999"})
    EXPECT_EQ(FromPunycode(text), "") << text;
  EXPECT_EQ(FromPunycode(std::string(400, 'a')), "");
}

}  // namespace
}  // namespace strobe::internal
