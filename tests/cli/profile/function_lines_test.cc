#include "../../../src/cli/profile/function_lines.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

FunctionLines LinesOf(const LoadedProfile& loaded, bool full_names = false) {
  absl::StatusOr<FunctionLines> lines = FunctionLines::Make(loaded, full_names);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return *std::move(lines);
}

// The functions and lines of a frame, innermost first.
std::vector<std::string> TextsOf(const FunctionLines& lines, std::uint32_t frame) {
  std::vector<std::string> texts;
  for (const FunctionLines::Line& line : lines.Of(frame))
    texts.push_back(lines.functions()[line.function].name + ":" + std::to_string(line.line));
  return texts;
}

MadeProfile OverloadsOfF() {
  MadeProfile made;
  made.Add({"main", "a::f(int)", "a::f(long)"}, {1});
  made.symbols().frames[1].line = 10;
  made.symbols().frames[2].line = 20;
  made.symbols().functions[2].file = "/src/f.cc";
  return made;
}

TEST(FunctionLinesTest, OverloadsAreOneFunctionByTheirShortName) {
  const FunctionLines lines = LinesOf(OverloadsOfF().Finish());
  ASSERT_THAT(lines.functions(), SizeIs(2));
  EXPECT_THAT(TextsOf(lines, 0), ElementsAre("main:0"));
  EXPECT_THAT(TextsOf(lines, 1), ElementsAre("a::f:10"));
  EXPECT_THAT(TextsOf(lines, 2), ElementsAre("a::f:20"));
  EXPECT_EQ(lines.functions()[1].file, "/src/f.cc") << "the first file that is known";
}

TEST(FunctionLinesTest, FullNamesTellThemApart) {
  const FunctionLines lines = LinesOf(OverloadsOfF().Finish(), true);
  ASSERT_THAT(lines.functions(), SizeIs(3));
  EXPECT_THAT(TextsOf(lines, 1), ElementsAre("a::f(int):10"));
  EXPECT_THAT(TextsOf(lines, 2), ElementsAre("a::f(long):20"));
  EXPECT_EQ(lines.functions()[1].file, "");
}

TEST(FunctionLinesTest, InlinedFunctionsStandBeforeTheFramesOwn) {
  MadeProfile made;
  made.Add({"main"}, {1});
  Symbols& symbols = made.symbols();
  symbols.functions.push_back({.name = "g", .system_name = "g"});
  symbols.functions.push_back({.name = "h", .system_name = "h"});
  symbols.inlined = {{.function = 2, .line = 9}, {.function = 1, .line = 8}};
  symbols.frames[0] = {.function = 0, .line = 7, .inlined_begin = 0, .inlined_count = 2};
  EXPECT_THAT(TextsOf(LinesOf(made.Finish()), 0), ElementsAre("h:9", "g:8", "main:7"));
}

TEST(FunctionLinesTest, CodeWithoutANameIsThatOfItsModuleOrItsAddress) {
  MadeProfile made;
  made.Add({"f"}, {1});
  made.profile().modules = {
      {.start = 0x1000, .limit = 0x3000, .path = "/lib/libz.so.1", .build_id = ""}};
  made.profile().frames.push_back({0x1234, 0});
  made.profile().frames.push_back({0x2000, Frame::kNoModule});
  made.profile().frames.push_back({static_cast<Address>(PseudoFrame::kLost), Frame::kPseudo});
  made.symbols().frames.resize(4);
  const FunctionLines lines = LinesOf(made.Finish());
  EXPECT_THAT(TextsOf(lines, 1), ElementsAre("libz.so.1+0x1234:0"));
  EXPECT_THAT(TextsOf(lines, 2), ElementsAre("0x2000:0"));
  EXPECT_THAT(TextsOf(lines, 3), ElementsAre("[lost]:0"));
}

TEST(FunctionLinesTest, NamesAreForPeople) {
  MadeProfile made;
  made.Add({"a\nb\xFF"}, {1});
  EXPECT_THAT(TextsOf(LinesOf(made.Finish(), true), 0), ElementsAre("a b?:0"));
}

TEST(FunctionLinesTest, RefusesAProfileThatRefersToWhatIsNotThere) {
  MadeProfile made;
  made.Add({"f"}, {1});
  made.symbols().frames[0].function = 5;
  EXPECT_EQ(FunctionLines::Make(made.Finish(), false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace strobe::internal
