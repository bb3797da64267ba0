#include "../../../src/cli/readers/read_text.h"

#include <string>
#include <utility>
#include <vector>

#include "../../../src/cli/readers/text_frames.h"
#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LoadedProfile Folded(std::string_view text) {
  Input input(ReadBytes(text));
  absl::StatusOr<LoadedProfile> loaded = ReadFolded(input);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LoadedProfile();
}

absl::Status FoldedError(std::string_view text) {
  Input input(ReadBytes(text));
  return ReadFolded(input).status();
}

TEST(ReadFoldedTest, ReadsStacksAndCounts) {
  const LoadedProfile loaded = Folded("main;f;g 3\nmain;f 1\n");
  EXPECT_THAT(RowsOf(loaded), ElementsAre("main;f;g 3", "main;f 1"));
  EXPECT_THAT(loaded.profile.value_types, ElementsAre(ValueType{"samples", "count"}));
  EXPECT_EQ(loaded.format, "folded stacks");
  EXPECT_THAT(loaded.profile.frames, SizeIs(3)) << "one for each function";
}

TEST(ReadFoldedTest, CountsOfEqualStacksAddUp) {
  EXPECT_THAT(RowsOf(Folded("f;g 3\nf 1\nf;g 4\nf 0\nzero 0\n")), ElementsAre("f;g 7", "f 1"));
}

TEST(ReadFoldedTest, EmptyLinesAndCommentsAreLeftOut) {
  EXPECT_THAT(RowsOf(Folded("\n# f 1\n   \n  f;g 2  \r\n")), ElementsAre("f;g 2"));
  EXPECT_THAT(RowsOf(Folded("")), IsEmpty());
}

TEST(ReadFoldedTest, NamesMayHaveSpaces) {
  EXPECT_THAT(RowsOf(Folded("operator new(unsigned long);a < b 12")),
              ElementsAre("operator new(unsigned long);a < b 12"));
}

TEST(ReadFoldedTest, KnowsPseudoFrames) {
  const LoadedProfile loaded = Folded("[truncated];f 2\n[other];f 1");
  ASSERT_THAT(loaded.profile.frames, SizeIs(3));
  EXPECT_EQ(loaded.profile.frames[0],
            (Frame{static_cast<Address>(PseudoFrame::kTruncated), Frame::kPseudo}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("[truncated];f 2", "[other];f 1"));
}

TEST(ReadFoldedTest, SaysWhichLineIsNone) {
  for (const char* text :
       {"f 1\nf;g\n", "f 1\nf x\n", "f 1\nf -3\n", "f 1\n7\n", "f 1\nf 99999999999999999999\n"}) {
    const absl::Status status = FoldedError(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 2")) << text;
  }
  EXPECT_FALSE(FoldedError(std::string(kMaxLineBytes + 1, 'f')).ok());
}

TEST(ReadFoldedTest, RefusesAStackWithTooManyFrames) {
  std::string stack;
  for (int i = 0; i < (1 << 16); ++i) stack += "f;";
  EXPECT_TRUE(FoldedError(stack + " 1").ok()) << "as many as there may be";
  EXPECT_THAT(std::string(FoldedError(stack + "f 1").message()), HasSubstr("too many frames"));
}

TEST(ReadFoldedTest, ASingleWordOfHexadecimalDigitsIsAFrameOfPerfs) {
  EXPECT_THAT(std::string(FoldedError("\t   55d0c0ffee10 Leaf+0x10 (/bin/p)\n").message()),
              HasSubstr("-F comm,tid,time,event"));
}

TEST(ReadFoldedTest, NumbersMayHaveAUnit) {
  Input input(ReadBytes("main;f 3\nmain;g 9223372036854775807\n"));
  const absl::StatusOr<LoadedProfile> loaded = ReadFolded(input, *FindFoldedUnit("us"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->profile.value_types, ElementsAre(ValueType{"time", "nanoseconds"}));
  EXPECT_THAT(RowsOf(*loaded), ElementsAre("main;f 3000", "main;g 9223372036854775807"))
      << "the largest number stays that";
  EXPECT_EQ(FindFoldedUnit("bytes")->type, (ValueType{"space", "bytes"}));
  EXPECT_EQ(FindFoldedUnit("samples")->type, (ValueType{"samples", "count"}));
  EXPECT_FALSE(FindFoldedUnit("hours").has_value());
  EXPECT_EQ(FoldedUnitNames(), "samples, ns, us, ms, s, bytes");
}

TEST(IsFoldedStackTest, EndsInACount) {
  for (const char* line : {"main;f 3", "  <module> (a.py:3);f 12  ", "{main} 1"})
    EXPECT_TRUE(IsFoldedStack(line)) << line;
  for (const char* line : {"", "main;f", "<!doctype html>", "{\"a\": 1}"})
    EXPECT_FALSE(IsFoldedStack(line)) << line;
}

}  // namespace
}  // namespace strobe::internal
