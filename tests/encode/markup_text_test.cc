#include "../../src/encode/html/markup_text.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(MarkupTextTest, NoCharacterIsMarkup) {
  std::string markup = "<title>";
  AppendMarkupText(markup, "a<b>&\"c\"");
  EXPECT_EQ(markup, "<title>a&lt;b&gt;&amp;\"c\"");
}

TEST(MarkupTextTest, CharactersThatXmlRefusesAreQuestionMarks) {
  std::string markup;
  AppendMarkupText(markup, "\uFFFEa\uFFFF\uFFFDz");
  EXPECT_EQ(markup, "?a?\uFFFDz");
}

}  // namespace
}  // namespace strobe::internal
