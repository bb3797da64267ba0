#include "../../../src/cli/live/keys.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Key Character(const char* text) { return {Key::Kind::kCharacter, text}; }

TEST(KeyReaderTest, ReadsWhatIsTyped) {
  KeyReader reader;
  EXPECT_THAT(reader.Take("q/\u00B5"),
              ElementsAre(Character("q"), Character("/"), Character("\u00B5")));
  EXPECT_THAT(reader.Take("\r\n\b\177"),
              ElementsAre(Key{Key::Kind::kEnter}, Key{Key::Kind::kEnter},
                          Key{Key::Kind::kBackspace}, Key{Key::Kind::kBackspace}));
  EXPECT_THAT(reader.Take("\001\t"), IsEmpty()) << "control characters";
  EXPECT_THAT(reader.Take(""), IsEmpty());
}

TEST(KeyReaderTest, AnEscapeThatNothingFollowsIsAKey) {
  KeyReader reader;
  EXPECT_THAT(reader.Take("\033"), ElementsAre(Key{Key::Kind::kEscape}));
  EXPECT_THAT(reader.Take("\033q"), ElementsAre(Key{Key::Kind::kEscape}, Character("q")));
}

TEST(KeyReaderTest, LeavesOutArrowsAndFunctionKeys) {
  KeyReader reader;
  EXPECT_THAT(reader.Take("\033[A\033[1;5Bs\033OPt\033[15~"),
              ElementsAre(Character("s"), Character("t")));
  EXPECT_THAT(reader.Take("\033["), IsEmpty()) << "without its end";
  EXPECT_THAT(reader.Take("\033O"), IsEmpty());
}

TEST(KeyReaderTest, ACharacterMayComeInParts) {
  KeyReader reader;
  EXPECT_THAT(reader.Take("\xE2\x82"), IsEmpty());
  EXPECT_THAT(reader.Take("\xACx"), ElementsAre(Character("\u20AC"), Character("x")));
}

TEST(KeyReaderTest, LeavesOutBytesThatAreNoCharacter) {
  KeyReader reader;
  EXPECT_THAT(reader.Take("\xAC\xE2x"), ElementsAre(Character("x")));
}

}  // namespace
}  // namespace strobe::internal
