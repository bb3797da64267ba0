#include "../../../src/cli/ui/pattern.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

bool Finds(const std::string& text, const std::string& name) {
  const absl::StatusOr<Pattern> pattern = Pattern::Parse(text);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  return pattern.ok() && pattern->Matches(name);
}

TEST(PatternTest, IsLookedForAnywhereInAName) {
  EXPECT_TRUE(Finds("oo", "foo"));
  EXPECT_FALSE(Finds("^oo", "foo"));
  EXPECT_TRUE(Finds("^f(o|x)+$", "fxo"));
  EXPECT_TRUE(Finds("", "anything"));
  EXPECT_TRUE(Finds("", ""));
  EXPECT_TRUE(Finds("::operator\\(\\)$", "A::operator()"));
  EXPECT_TRUE(Finds("\\bnew\\b", "operator new[]"));
  EXPECT_FALSE(Finds("\\bnew\\b", "renew"));
  EXPECT_TRUE(Finds("a\\Bb", "ab"));
  EXPECT_TRUE(Finds("^(?:get|set)[A-Z]\\w*$", "setName"));
  EXPECT_FALSE(Finds("^(?:get|set)[A-Z]\\w*$", "reset"));
  EXPECT_TRUE(Finds("^a{2,3}$", "aaa"));
  EXPECT_FALSE(Finds("^a{2,3}$", "aaaa"));
  EXPECT_TRUE(Finds("^a{2,}?b??$", "aaaa"));
  EXPECT_FALSE(Finds("^a{2}$", "a"));
  EXPECT_TRUE(Finds("^[^\\s\\d]+$", "abc"));
  EXPECT_FALSE(Finds("^[^\\s\\d]+$", "abc1"));
  EXPECT_TRUE(Finds("^[\\D]$", "x"));
  EXPECT_TRUE(Finds("^[[:alpha:]_-]+$", "a_-b"));
  EXPECT_TRUE(Finds("^\\x41\\u00fc$", "A\u00FC"));
  EXPECT_TRUE(Finds("{", "{lambda()#1}"));
  EXPECT_FALSE(Finds("a[]", "a"));
  EXPECT_TRUE(Finds("a|^$", ""));
  EXPECT_TRUE(Finds("()*x", "x"));
  EXPECT_TRUE(Finds("^M.ller$", "M\u00FCller")) << "a point is a character";
  EXPECT_TRUE(Finds("b$", std::string(100'000, 'a') + "b"));
}

TEST(PatternTest, AnErrorRepeatsThePattern) {
  for (const std::string text :
       {"(f", "f)", "a**", "*", "a+{2}", "{2}", "(?=x)", "(a)\\1", "[a", "[z-a]", "a{3,2}", "\\q",
        "a\\", "\\x4", "[[:no:]]", "a{1001}", "((a{100}){100}){100}", "((){999}){999}"}) {
    const absl::Status status = Pattern::Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("\"" + text + "\""));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(Pattern::Parse(std::string(kMaxPatternBytes + 1, 'f')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Pattern::Parse(std::string(kMaxPatternBytes, '(')).status()));
}

// A matcher that tries one way after the other takes longer than the universe is old.
TEST(PatternTest, TheTimeIsThatOfOnePassOverTheName) {
  const std::string name = std::string(100'000, 'a') + "!";
  for (const char* const text : {"^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*b", "^(([a-z])+.)+Z$"})
    EXPECT_FALSE(Finds(text, name)) << text;
  EXPECT_TRUE(Finds("^(a+)+!$", name));
}

}  // namespace
}  // namespace strobe::internal
