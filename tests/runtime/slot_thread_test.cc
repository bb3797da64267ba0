#include "strobe/runtime/slot_thread.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "manual_traits.h"
#include "strobe/runtime/session.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;

// How many threads have a timer, of one.
std::uint64_t ThreadsOnTimers(SampleTrigger trigger, bool refuses_timers) {
  ManualPlatform::Reset();
  ManualPlatform::With([&](auto& state) { state.refuses_timers = refuses_timers; });
  ThreadRegistry<ManualTraits> registry(10, 32 * 1024);
  EXPECT_TRUE(registry.Open().ok());
  const CodeRegistry generated;
  CollectorCounters counters;
  LoadedCode<ManualTraits> code(generated, counters);
  const ProfilerOptions options{.sampling = {.trigger = trigger}};
  Session<ManualTraits> session(options, registry, code, counters, 23);
  auto* const slot = *registry.Register({.id = 2, .stack = {}}, "thread");
  session.Attach(*slot);
  Stats stats;
  registry.AddTo(stats);
  // A slot whose account is never settled is not attached again, by whichever test uses it next.
  session.End();
  session.FinishAll();
  registry.Unregister(slot);
  return stats.threads_on_timers;
}

TEST(SlotThread, NotesWhetherTheThreadHasATimer) {
  EXPECT_EQ(ThreadsOnTimers(SampleTrigger::kTimers, false), 1u);
  EXPECT_EQ(ThreadsOnTimers(SampleTrigger::kTimers, true), 0u);
  EXPECT_EQ(ThreadsOnTimers(SampleTrigger::kAuto, false), 0u);
}

}  // namespace
}  // namespace strobe::internal
