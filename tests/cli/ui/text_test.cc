#include "../../../src/cli/ui/text.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(ShareTextTest, HasAnErrorIfThatIsKnown) {
  EXPECT_EQ(ShareText(0.1234, NAN), "12.3 %");
  EXPECT_EQ(ShareText(0.1234, 0.004), "12.3 % \u00B1 0.4");
}

TEST(ChangeTextTest, HasASignAndMaybeAnError) {
  EXPECT_EQ(ChangeText(30.6e6, 9.1e6, "nanoseconds"), "+30.600 ms \u00B1 9.100 ms");
  EXPECT_EQ(ChangeText(-3e6, NAN, "nanoseconds"), "-3.000 ms");
  EXPECT_EQ(ChangeText(5, NAN, "count"), "+5");
  EXPECT_EQ(ChangeText(0, NAN, "count"), "0");
}

TEST(ColumnTextTest, SpacesFillCharactersNotBytes) {
  EXPECT_EQ(Right("ab", 4), "  ab");
  EXPECT_EQ(Left("ab", 4), "ab  ");
  EXPECT_EQ(Right("\u00B5s", 4), "  \u00B5s");
  EXPECT_EQ(Left("\u00B5s", 4), "\u00B5s  ");
  EXPECT_EQ(Right("abcde", 4), "abcde") << "nothing is cut";
  EXPECT_EQ(Left("abcde", 4), "abcde");
}

TEST(CutToTest, FitsTheColumns) {
  EXPECT_EQ(CutTo("name", 0), "name");
  EXPECT_EQ(CutTo("name", 4), "name");
  EXPECT_EQ(CutTo("name", 3), "na\u2026");
  EXPECT_EQ(CutTo("\u00B5\u00B5\u00B5", 2), "\u00B5\u2026");
  EXPECT_EQ(CutTo("name", 1), "\u2026");
}

TEST(PaperTest, ColoursAreForATerminalThatShowsThem) {
  const Printer terminal(Terminal{.shows_output = true});
  EXPECT_EQ(terminal.Bold("x"), "\033[1mx\033[0m");
  EXPECT_EQ(terminal.Dim("x"), "\033[2mx\033[0m");
  EXPECT_EQ(terminal.Red("x"), "\033[31mx\033[0m");
  EXPECT_EQ(terminal.Blue("x"), "\033[34mx\033[0m");
  const Printer file(Terminal{.shows_errors = true});
  EXPECT_EQ(file.Bold("x"), "x");
}

TEST(PaperTest, CutsNamesToTheWidthOfTheTerminal) {
  const std::string name(100, 'x');
  EXPECT_EQ(Printer(Terminal{}).Cut(name, 10), name) << "the width is not known";
  const Printer printer(Terminal{.columns = 80});
  EXPECT_EQ(printer.Cut(std::string(70, 'x'), 10), std::string(70, 'x')) << "it fits";
  EXPECT_EQ(printer.Cut(name, 10), std::string(69, 'x') + "\u2026");
  EXPECT_EQ(printer.Cut(name, 79), std::string(19, 'x') + "\u2026") << "some of it is always there";
}

TEST(PaperTest, CutsAtTheEndOfACharacter) {
  std::string name;
  for (int i = 0; i < 30; ++i) name += "\u00B5";
  std::string cut;
  for (int i = 0; i < 19; ++i) cut += "\u00B5";
  EXPECT_EQ(Printer(Terminal{.columns = 20}).Cut(name, 0), cut + "\u2026");
}

}  // namespace
}  // namespace strobe::internal
