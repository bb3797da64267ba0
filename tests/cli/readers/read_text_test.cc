#include "../../../src/cli/readers/read_text.h"

#include <string>
#include <utility>
#include <vector>

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

LoadedProfile Script(std::string_view text) {
  Input input(ReadBytes(text));
  absl::StatusOr<LoadedProfile> loaded = ReadPerfScript(input);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LoadedProfile();
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

TEST(IsPerfSampleTest, KnowsTheFirstLineOfASample) {
  EXPECT_TRUE(IsPerfSample("program 4242/4243 [003] 12.345678:     250000 cpu-clock:"));
  EXPECT_TRUE(IsPerfSample("program  4242 12.345678: cycles:u: "));
  EXPECT_TRUE(IsPerfSample("two words: 7 4242 [000] 12.345678: 1 cycles:"));
  for (const char* line :
       {"", "# program 1 1.0: 1 cycles:", "\tprogram 1 1.0: 1 cycles:", "main;f 12",
        "program 4242 12.345678: 250000 cpu-clock",
        "4242 12.345678: 1 cycles:", "program x 12.345678: 1 cycles:", "program 4242 12: 1 cycles:",
        "    7f12ab34 malloc+0x12 (/usr/lib/libc.so.6)"})
    EXPECT_FALSE(IsPerfSample(line)) << line;
}

constexpr const char* kTwoSamples =
    "program 10/11 [003] 12.000000001:     250000 cpu-clock:u:\n"
    "\t    7f0012 leaf+0x12 (/lib/libc.so.6)\n"
    "\t    400100 main+0x10 (/bin/program)\n"
    "\n"
    "program 10/11 [001] 13.5:     250000 cpu-clock:u:\n"
    "\t    7f0012 leaf+0x12 (/lib/libc.so.6)\n"
    "\t    400100 main+0x10 (/bin/program)\n";

TEST(ReadPerfScriptTest, ReadsSamplesOfAClock) {
  const LoadedProfile loaded = Script(kTwoSamples);
  EXPECT_EQ(loaded.format, "perf script");
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("main;leaf 2 500000"));
  ASSERT_THAT(loaded.profile.threads, SizeIs(1));
  EXPECT_EQ(loaded.profile.threads[0].id, 11u);
  EXPECT_EQ(loaded.profile.threads[0].name, "program");
}

TEST(ReadPerfScriptTest, EachSampleIsAMoment) {
  const LoadedProfile loaded = Script(kTwoSamples);
  ASSERT_THAT(loaded.profile.moments, SizeIs(2));
  EXPECT_EQ(loaded.profile.moments[0].time_ns, 12'000'000'001);
  EXPECT_EQ(loaded.profile.moments[1].time_ns, 13'500'000'000);
  EXPECT_THAT(loaded.profile.moment_values, ElementsAre(1, 250'000, 1, 250'000));
}

TEST(ReadPerfScriptTest, FramesHaveAddressesInModules) {
  const LoadedProfile loaded = Script(
      "p 1 1.0: 1 cycles:\n\t7f0012 leaf+0x12 (/lib/libc.so.6)\n\t7f0900 other (/lib/libc.so.6)\n");
  ASSERT_THAT(loaded.profile.modules, SizeIs(1));
  EXPECT_EQ(loaded.profile.modules[0].path, "/lib/libc.so.6");
  EXPECT_EQ(loaded.profile.modules[0].start, 0x7f0012u);
  EXPECT_EQ(loaded.profile.modules[0].limit, 0x7f0901u);
  EXPECT_THAT(loaded.profile.frames, ElementsAre(Frame{0x7f0012, 0}, Frame{0x7f0900, 0}));
}

TEST(ReadPerfScriptTest, CodeWithoutANameOrAModule) {
  const LoadedProfile loaded = Script(
      "p 1 1.0: 1 cycles:\n"
      "\tffffffffffffffff [unknown] ([unknown])\n"
      "\t12 (/bin/p)\n"
      "\t34 inlined_one (inlined)\n"
      "  src/main.cc:12\n"
      "\tno hexadecimal number\n");
  EXPECT_THAT(RowsOf(loaded), ElementsAre("inlined_one;[unknown];[unknown] 1 1"));
  for (const FunctionSymbol& function : loaded.symbols.functions)
    EXPECT_EQ(function.resolved, function.name != "[unknown]") << function.name;
}

TEST(ReadPerfScriptTest, SamplesOfAnotherEventHaveItAsALabel) {
  const LoadedProfile loaded = Script(
      "p 1 1.0: 10 cycles:u:\n\t12 f (/bin/p)\n\n"
      "p 1 2.0: 7 page-faults:\n\t12 f (/bin/p)\n\n"
      "p 1 3.0: 20 cycles:\n\t12 f (/bin/p)\n");
  EXPECT_EQ(loaded.profile.value_types[1], (ValueType{"cycles", "count"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 2 30", "f 1 0"));
  EXPECT_EQ(loaded.profile.Labels(0).Text("event"), "");
  EXPECT_EQ(loaded.profile.Labels(1).Text("event"), "page-faults");
}

}  // namespace
}  // namespace strobe::internal
