#include "strobe/runtime/threads/provider_view.h"

#include <cstdint>

#include "../manual_traits.h"
#include "gtest/gtest.h"
#include "strobe/runtime/session/session.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;

// The account of one attached thread.
Stats StatsOfOne(SampleTrigger trigger, bool refuses_timers) {
  ManualPlatform::Reset();
  ManualPlatform::With(
      [&](auto& state) { state.refuses_timers = state.refuses_random_timers = refuses_timers; });
  ThreadRegistry<ManualTraits> registry(10, 32 * 1024);
  EXPECT_TRUE(registry.Open().ok());
  const CodeRegistry generated;
  CollectorCounters counters;
  LoadedCode<ManualTraits> code(generated, counters.code);
  const ProfilerOptions options{.sampling = {.trigger = trigger}};
  Session<ManualTraits> session(options, registry, code, counters, 23);
  auto* const thread = *registry.Register({.id = 2, .stack = {}}, "thread");
  session.Attach(*thread);
  Stats stats;
  registry.AddTo(stats);
  // A thread whose account is never settled is not attached again, by whichever test uses it next.
  session.End();
  session.FinishAll();
  registry.Unregister(thread);
  ManualPlatform::With([](auto& state) {
    EXPECT_TRUE(state.timers.empty() && state.random_timers.empty()) << "stopped at the end";
  });
  return stats;
}

TEST(ProviderView, NotesWhetherTheThreadHasATimer) {
  EXPECT_EQ(StatsOfOne(SampleTrigger::kTimers, false).threads_on_timers, 1u);
  EXPECT_EQ(StatsOfOne(SampleTrigger::kTimers, true).threads_on_timers, 0u);
  EXPECT_EQ(StatsOfOne(SampleTrigger::kAuto, false).threads_on_timers, 1u);
  EXPECT_EQ(StatsOfOne(SampleTrigger::kRandom, false).threads_on_timers, 0u);
}

TEST(ProviderView, NotesWhetherTheThreadHasARandomTimer) {
  const Stats stats = StatsOfOne(SampleTrigger::kPerf, false);
  EXPECT_EQ(stats.threads_on_random_timers, 1u);
  EXPECT_EQ(stats.threads_on_timers, 0u);
  EXPECT_EQ(StatsOfOne(SampleTrigger::kPerf, true).threads_on_random_timers, 0u);
}

}  // namespace
}  // namespace strobe::internal
