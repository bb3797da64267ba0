#include "../../src/examples/quickstart_summary.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace {

using strobe::testing::PprofProfile;

// main calls f<int>(), which calls itself, in the thread "a"; and a cut stack in "b".
PprofProfile SmallProfile() {
  PprofProfile profile;
  profile.sample_types = {{"samples", "count"}, {"cpu", "nanoseconds"}};
  const auto function = [](std::uint64_t id, const char* name) {
    PprofProfile::Function made;
    made.id = id;
    made.name = name;
    return made;
  };
  profile.functions = {function(1, "main"), function(2, "bool f<int>(char const*) const"),
                       function(3, "[truncated]")};
  for (std::uint64_t id = 1; id <= 3; ++id)
    profile.locations.push_back(
        {.id = id, .mapping = id == 3 ? 0u : 1u, .lines = {{.function = id}}});
  profile.samples = {
      {.locations = {2, 2, 1}, .values = {3, 30}, .labels = {{.key = "thread_name", .text = "a"}}},
      {.locations = {1}, .values = {1, 10}, .labels = {{.key = "thread_name", .text = "a"}}},
      {.locations = {1, 3}, .values = {1, 5}, .labels = {{.key = "thread_name", .text = "b"}}}};
  return profile;
}

TEST(QuickstartSummaryTest, AddsUpOneValueType) {
  const ValueSummary cpu = Summarize(SmallProfile(), "cpu");
  EXPECT_EQ(cpu.total, 45);
  EXPECT_EQ(cpu.flat_by_function.at("main"), 15);
  EXPECT_EQ(cpu.flat_by_function.at("f<...>"), 30) << "without arguments and return types";
  EXPECT_EQ(cpu.cumulative_by_function.at("main"), 45);
  EXPECT_EQ(cpu.cumulative_by_function.at("f<...>"), 30) << "a recursive function counts once";
  EXPECT_EQ(cpu.by_thread_name.at("a"), 40);
  EXPECT_EQ(cpu.cut_by_thread_name.at("a"), 0);
  EXPECT_EQ(cpu.cut_by_thread_name.at("b"), 5);
  EXPECT_GT(cpu.samples.taken(), 0);
  EXPECT_EQ(Summarize(SmallProfile(), "samples").total, 5);
}

TEST(QuickstartSummaryTest, AProfileMayNotHaveTheType) {
  const ValueSummary wall = Summarize(SmallProfile(), "wall");
  EXPECT_EQ(wall.total, 0);
  EXPECT_TRUE(wall.flat_by_function.empty());
}

TEST(QuickstartSummaryTest, PrintsEveryFunctionAndThread) {
  const ValueSummary cpu = Summarize(SmallProfile(), "cpu");
  testing::internal::CaptureStdout();
  PrintTop(cpu, "CPU time");
  PrintThreads({{.name = "a", .cpu_ns = 40}, {.name = "idle", .cpu_ns = 0}}, cpu);
  PrintAccount({}, 0);
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* const part : {"CPU time", "f<...>", "main", "  a ", "idle", "measured"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(text.find("nan"), std::string::npos) << "nothing is divided by zero";
  EXPECT_EQ(text.find("inf "), std::string::npos);
}

TEST(QuickstartSummaryTest, AFileThatIsNoProfileIsNone) {
  const strobe::testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "profile").string();
  EXPECT_FALSE(ReadProfile(path).has_value());
  std::ofstream(path) << "text";
  EXPECT_FALSE(ReadProfile(path).has_value());
}

}  // namespace
