#include "../../../src/symbolize/names/mangled_text.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// A language of 'a', 'b' and lists of them: "[ab]" is written "(a,b)". 'r' says again what there is
// from the begin to the next ']'.
class ListText : MangledText {
 public:
  explicit ListText(std::string_view text) : MangledText(text) {}

  std::string Read() {
    Part();
    return Finish();
  }
  // The first of these that the text follows.
  std::string ReadListOrLetters() {
    if (!Try([this] {
          Part();
          return at_end();
        }))
      Write(TakeWhile([](char c) { return c != '!'; }));
    return Finish();
  }

 private:
  void Part() {
    const Level level(*this);
    if (failed()) return;
    if (Take("ab")) return Write("a,b");
    if (Take('r')) return ReadAt(0, [this] { Part(); });
    if (!Take('[')) return Fail();
    const std::size_t begin = written_text().size();
    while (!failed() && !Take(']')) Part();
    Write("(" + Cut(begin) + ")");
  }
};

TEST(MangledText, IsReadWhole) {
  EXPECT_EQ(ListText("[ab]").Read(), "(a,b)");
  EXPECT_EQ(ListText("[[ab]ab]").Read(), "((a,b)a,b)");
  for (const char* text : {"", "a", "[ab", "[ab]]", "[b]"}) EXPECT_EQ(ListText(text).Read(), "");
}

TEST(MangledText, GoesBackToWhereATryBegan) {
  EXPECT_EQ(ListText("[ab]").ReadListOrLetters(), "(a,b)");
  EXPECT_EQ(ListText("[ab]x").ReadListOrLetters(), "[ab]x");
  EXPECT_EQ(ListText("[ab!").ReadListOrLetters(), "");
}

TEST(MangledText, HasLimits) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NE(ListText(nested(MangledText::kMaxDepth)).Read(), "");
  EXPECT_EQ(ListText(nested(MangledText::kMaxDepth + 1)).Read(), "");
  EXPECT_EQ(ListText("[r]").Read(), "");
  std::string many = "[";
  for (std::size_t i = 0; i < MangledText::kMaxWrittenBytes / 3; ++i) many += "ab";
  EXPECT_EQ(ListText(many + "]").Read(), "");
  // What is tried next is not read either.
  EXPECT_EQ(ListText(many + "]x").ReadListOrLetters(), "");
}

}  // namespace
}  // namespace strobe::internal
