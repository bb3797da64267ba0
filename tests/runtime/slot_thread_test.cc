#include "strobe/runtime/slot_thread.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "manual_traits.h"
#include "strobe/runtime/session.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;

struct CopyingPlatform : ManualPlatform {
  static constexpr bool kCopiesStacks = true;
};
struct CopyingTraits : ManualTraits {
  using Platform = CopyingPlatform;
};

// How many threads are said to have been refused a timer, of one.
template <class Traits>
std::uint64_t ThreadsOnFallback() {
  ManualPlatform::Reset();
  ManualPlatform::With([](auto& state) { state.refuses_timers = true; });
  ThreadRegistry<Traits> registry(10, 32 * 1024);
  EXPECT_TRUE(registry.Open().ok());
  const CodeRegistry generated;
  CollectorCounters counters;
  LoadedCode<Traits> code(generated, counters);
  Session<Traits> session(ProfilerOptions(), registry, code, counters, 23);
  auto* const slot = *registry.Register({.id = 2, .stack = {}}, "thread");
  session.Attach(*slot);
  Stats stats;
  registry.AddTo(stats);
  // A slot whose account is never settled is not attached again, by whichever test uses it next.
  session.End();
  session.FinishAll();
  registry.Unregister(slot);
  return stats.threads_on_fallback;
}

TEST(SlotThread, ATimerIsRefusedOnlyWhereThereAreTimers) {
  EXPECT_EQ(ThreadsOnFallback<ManualTraits>(), 1u);
  EXPECT_EQ(ThreadsOnFallback<CopyingTraits>(), 0u);
}

}  // namespace
}  // namespace strobe::internal
