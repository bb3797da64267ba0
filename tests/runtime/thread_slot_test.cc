#include "strobe/runtime/thread_slot.h"

#include <thread>

#include "gtest/gtest.h"
#include "strobe/default_traits.h"

namespace strobe::internal {
namespace {

using Slot = ThreadSlot<DefaultTraits>;

// 10,000 idle threads are to cost about half a KiB each, with what the aggregator knows of each.
static_assert(sizeof(Slot) <= 480);

TEST(ThreadSlot, IsAwaitedWhileAnActiveSlotHasARequest) {
  Slot slot;
  EXPECT_FALSE(Slot::IsAwaited(slot));
  slot.cells[1].requested = 5;
  EXPECT_FALSE(Slot::IsAwaited(slot)) << "the session has ended";
  slot.is_active = true;
  EXPECT_TRUE(Slot::IsAwaited(slot));
  slot.cells[1].requested = 0;
  EXPECT_FALSE(Slot::IsAwaited(slot));
}

TEST(CaptureCounters, AddUpAndClear) {
  CaptureCounters counters;
  counters.captures = 4;
  counters.drops[static_cast<std::size_t>(DropReason::kNoRegisters)] = 3;
  counters.ends[static_cast<std::size_t>(StackEnd::kBroken)] = 2;
  counters.time_ns = 100;
  Stats stats;
  counters.AddTo(stats);
  counters.AddTo(stats);
  EXPECT_EQ(stats.drops[static_cast<std::size_t>(DropReason::kNoRegisters)], 6u);
  EXPECT_EQ(stats.drops[static_cast<std::size_t>(DropReason::kRingFull)], 0u);
  EXPECT_EQ(stats.stack_ends[static_cast<std::size_t>(StackEnd::kBroken)], 4u);
  EXPECT_EQ(stats.handler_time_ns, 200);
  counters.Clear();
  counters.AddTo(stats);
  EXPECT_EQ(stats.handler_time_ns, 200);
  EXPECT_EQ(counters.captures, 4u)
      << "the slot's memory was touched by these, whichever thread has it next";
}

TEST(WaitUntilClear, WaitsForTheFlagButNotForEver) {
  std::atomic<bool> flag{false};
  EXPECT_TRUE(WaitUntilClear(flag, 0));
  flag = true;
  EXPECT_FALSE(WaitUntilClear(flag, 1'000'000));
  std::thread other([&] { flag = false; });
  EXPECT_TRUE(WaitUntilClear(flag, 60'000'000'000));
  other.join();
}

}  // namespace
}  // namespace strobe::internal
