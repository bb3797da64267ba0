#include "../../../src/cli/readers/read_perf_script.h"

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

LoadedProfile Script(std::string_view text) {
  Input input(ReadBytes(text));
  absl::StatusOr<LoadedProfile> loaded = ReadPerfScript(input);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LoadedProfile();
}

TEST(IsPerfScriptTest, KnowsTheFirstLineOfASample) {
  EXPECT_TRUE(IsPerfScript("program 4242/4243 [003] 12.345678:     250000 cpu-clock:"));
  EXPECT_TRUE(IsPerfScript("program  4242 12.345678: cycles:u: "));
  EXPECT_TRUE(IsPerfScript("program 4242 U 12.345678: 1 cycles:")) << "-F +misc";
  EXPECT_TRUE(IsPerfScript("4242 12.345678: 1 cycles:")) << "-F -comm";
  EXPECT_TRUE(IsPerfScript("program 12.345678: 1 cycles:")) << "-F -tid";
  EXPECT_TRUE(IsPerfScript("program 4242 12.345678: 1 ")) << "-F -event";
  EXPECT_TRUE(IsPerfScript("program 4242 1 cycles: ")) << "-F -time";
  EXPECT_TRUE(IsPerfScript("program 4242 cycles:")) << "-F comm,tid,event";
  EXPECT_TRUE(IsPerfScript("program 4242 12.345678: PERF_RECORD_COMM exec: program:4242/4242"));
  EXPECT_TRUE(IsPerfScript("two words: 7 4242 [000] 12.345678: 1 cycles:"));
  for (const char* line :
       {"", "# program 1 1.0: 1 cycles:", "\tprogram 1 1.0: 1 cycles:", "main;f 12",
        "program 4242 12.345678: 250000 cpu-clock", "a word 7: and more",
        "program 4242 12: 1 cycles:", "    7f12ab34 malloc+0x12 (/usr/lib/libc.so.6)"})
    EXPECT_FALSE(IsPerfScript(line)) << line;
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

TEST(ReadPerfScriptTest, EachEventIsAValueType) {
  const LoadedProfile loaded = Script(
      "p 1 1.0: 10 cycles:u:\n\t12 f (/bin/p)\n\n"
      "p 1 2.0: 7 page-faults:\n\t12 f (/bin/p)\n\n"
      "p 1 3.0: 20 cycles:\n\t12 f (/bin/p)\n");
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"cycles", "count"},
                          ValueType{"page-faults", "count"}));
  EXPECT_EQ(loaded.profile.default_value_type, 1u);
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 2 30 7"));
  EXPECT_THAT(loaded.profile.moment_values, ElementsAre(1, 10, 0, 0, 0, 7, 1, 20, 0));
}

TEST(ReadPerfScriptTest, TracepointsOfOneSubsystemAreApart) {
  const LoadedProfile loaded = Script(
      "p 1 [000] 1.0: sched:sched_switch: prev_comm=p prev_pid=1\n\t12 f (/bin/p)\n\n"
      "p 1 [000] 2.0: sched:sched_waking: comm=b pid=7\n\t12 f (/bin/p)\n");
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"sched:sched_switch", "count"},
                          ValueType{"sched:sched_waking", "count"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 1 1 1"));
}

TEST(ReadPerfScriptTest, WithoutPeriodsAClockIsNoTime) {
  const LoadedProfile loaded = Script("p 1 1.0: cpu-clock:\n\t12 f (/bin/p)\n");
  EXPECT_EQ(loaded.profile.value_types[1], (ValueType{"cpu-clock", "count"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 1 1"));
}

TEST(ReadPerfScriptTest, TheTermsOfAnEventAreNoneOfItsName) {
  EXPECT_EQ(Script("p 1 1.0: 5 cpu-clock/freq=99/u: \n\t12 f (/bin/p)\n").profile.value_types[1],
            (ValueType{"cpu", "nanoseconds"}));
}

TEST(ReadPerfScriptTest, WithoutCallChainsTheAddressStandsInTheFirstLine) {
  const LoadedProfile loaded = Script(
      "     p  1   1.0:    10 cpu-clock:      55caa19ca449 Leaf+0x19 (/opt/p)\n"
      "  leaf.c:12\n"
      "     p  1   2.0:    10 cpu-clock:      55caa19ca44b Leaf+0x1b (/opt/p)\n"
      "     p  1   3.0:    10 cpu-clock: \n");
  EXPECT_THAT(RowsOf(loaded), ElementsAre("Leaf 1 10", "Leaf 1 10", "[no stack] 1 10"));
  ASSERT_THAT(loaded.profile.modules, SizeIs(1));
  EXPECT_EQ(loaded.profile.modules[0].path, "/opt/p");
}

TEST(ReadPerfScriptTest, PathsMayHaveBrackets) {
  const LoadedProfile loaded = Script(
      "p 1 1.0: 1 cycles:\n"
      "\t4 [unknown] (/memfd:code (deleted))\n"
      "\t12 f+0x1 (/opt/a (old)/p (deleted))\n"
      "\t14 std::function<void (int)>::operator()(int) const (/opt/p(1))\n"
      "\t16 g+0x1 (/opt/odd)name)\n");
  std::vector<std::string> paths;
  for (const Module& module : loaded.profile.modules) paths.push_back(module.path);
  EXPECT_THAT(paths, ElementsAre("/memfd:code", "/opt/a (old)/p", "/opt/p(1)", "/opt/odd)name"));
  EXPECT_EQ(loaded.profile.modules[0].kind, ModuleKind::kGeneratedCode);
  EXPECT_THAT(RowsOf(loaded),
              ElementsAre("g;std::function<void (int)>::operator()(int) const;f;[unknown] 1 1"));
}

TEST(ReadPerfScriptTest, OtherRecordsAreNoSamples) {
  const LoadedProfile loaded = Script(
      "abc     0     0.000000: PERF_RECORD_MMAP -1/0: [0xff81(0x12) @ 0xff81]: x [kernel]_text\n"
      "abc   1   1.0: PERF_RECORD_COMM: abc:1/1\n"
      "abc   1   1.5:    10 cycles: \n\t12 f (/bin/p)\n\n"
      "abc   1   2.0: PERF_RECORD_MMAP2 1/1: [0x5577(0x1000) @ 0x1000 fe:00 99 32]: r-xp /bin/p\n"
      "abc   1   3.0: PERF_RECORD_FORK(2:2):(1:1)\n"
      "abc   2   3.5: PERF_RECORD_EXIT(2:2):(1:1)\n");
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 1 10"));
  EXPECT_THAT(loaded.profile.value_types, SizeIs(2));
}

TEST(ReadPerfScriptTest, FieldsMayBeMissing) {
  const auto sample = [](const char* head) {
    const LoadedProfile loaded = Script(std::string(head) + "\n\t    12 f\n\n");
    std::string text = RowsOf(loaded).at(0);
    for (const ProfileThread& thread : loaded.profile.threads)
      text += ", " + thread.name + " " + std::to_string(thread.id);
    return text + (loaded.profile.moments.empty() ? "" : " at a time");
  };
  EXPECT_EQ(sample("p 7 1.0: 10 cycles: "), "f 1 10, p 7 at a time");
  EXPECT_EQ(sample("p 7 10 cycles: "), "f 1 10, p 7");
  EXPECT_EQ(sample("p 6/7 cycles: "), "f 1 1, p 7");
  EXPECT_EQ(sample("7 1.0: 10 cycles: "), "f 1 10,  7 at a time");
  EXPECT_EQ(sample("p 1.0: 10 cycles: "), "f 1 10, p 0 at a time");
  EXPECT_EQ(sample("p 7 1.0: 10 "), "f 1, p 7 at a time");
  EXPECT_EQ(sample("p 7 U  1.0: 10 cycles: "), "f 1 10, p 7 at a time");
}

}  // namespace
}  // namespace strobe::internal
