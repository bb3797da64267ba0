// Code that is unloaded before its samples have been read, as by a program that runs plug-ins.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "collecting_exporter.h"
#include "named_stacks.h"
#include "platform/test_system.h"
#include "support/until_seen.h"

namespace strobe::testing {

using PluginWork = void (*)(bool (*done)());
// Longer each time: a plug-in that comes and goes between two looks of the collector is never seen.
constexpr std::int64_t kMoreWorkNs = 5'000'000;

// Not in the anonymous namespace: a reader of the profile looks for this name.
__attribute__((noinline)) void WorkInPlugin(PluginWork work, std::int64_t cpu_ns) {
  static std::int64_t end_ns = 0;
  end_ns = ThreadCpuNs() + cpu_ns;
  work([] { return ThreadCpuNs() > end_ns; });
  asm volatile("");
}

namespace {

bool IsOfPlugin(const NamedStack& stack) {
  return std::ranges::find(stack.frames, "PluginASpins") != stack.frames.end();
}

TEST(UnloadedCode, HasWholeStacksBesideItsTime) {
  if (kSignalsAreLate) GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  const char* const path = std::getenv("STROBE_TEST_PLUGIN_A");
  ASSERT_NE(path, nullptr);
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  {
    const Registration registration = profiler.RegisterThread("main");
    std::int64_t cpu_ns = 0;
    WorkUntilStack(profiler, &IsOfPlugin, [&] {
      const Library plugin(path);
      ASSERT_TRUE(plugin);
      cpu_ns += kMoreWorkNs;
      WorkInPlugin(reinterpret_cast<PluginWork>(plugin.Symbol("PluginWork")), cpu_ns);
    });
  }
  ASSERT_TRUE(profiler.Stop().ok());
  for (const NamedStack& stack : NamedStacksOf(CollectingExporter::Take())) {
    if (!IsOfPlugin(stack)) continue;
    EXPECT_TRUE(stack.Has("WorkInPlugin")) << ::testing::PrintToString(stack.frames);
  }
}

}  // namespace
}  // namespace strobe::testing
