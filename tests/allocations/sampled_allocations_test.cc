#include "../../src/allocations/sampled_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <future>
#include <optional>
#include <thread>

#include "gtest/gtest.h"
#include "integration/forked_child.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/provider/event_target.h"

namespace strobe::internal {
namespace {

TEST(SampledAllocationsTest, WithoutASessionNothingIsKept) {
  int block = 0;
  errno = EINTR;
  EXPECT_EQ(TakeAllocation(&block, std::size_t{1} << 60), &block);
  EXPECT_EQ(TakeAllocation(nullptr, std::size_t{1} << 60), nullptr);
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(ForgetBlock(&block), std::nullopt);
  NoteFree(&block);
  NoteFree(nullptr);
}

// A target whose first event waits, so that a thread is in the sink as long as the test wants.
struct WaitingTarget {
  static bool Record(void* waiting, const SampledAmounts& /*amounts*/, StackKeeper* /*keeper*/) {
    auto& self = *static_cast<WaitingTarget*>(waiting);
    if (self.events.fetch_add(1) == 0) self.end.get_future().wait();
    return true;
  }

  std::atomic<int> events{0};
  std::promise<void> end;
};

// The mutex is held by a thread that waits for the first one, and does not exist in the child.
TEST(SampledAllocationsTest, AForkWhileASamplingEndsLeavesTheChildAnother) {
  WaitingTarget waiting;
  const EventTarget target{.record = &WaitingTarget::Record, .profiler = &waiting};
  ASSERT_TRUE(BeginAllocations(target, {.live_heap = false}).ok());
  const auto take = [] {
    int block = 0;
    static_cast<void>(TakeAllocation(&block, std::size_t{1} << 60));
  };
  std::thread user(take);
  while (waiting.events.load() == 0) std::this_thread::yield();
  std::thread ender(&EndAllocations);
  // Once events do not arrive any more, the ending has begun, and waits for the user.
  for (int events = 0; events != waiting.events.load(); std::this_thread::yield()) {
    events = waiting.events.load();
    take();
  }
  const int status = testing::RunInChild([&target] {
    EndAllocations();
    STROBE_CHILD_CHECK(BeginAllocations(target, {.live_heap = false}).ok());
  });
  EXPECT_EQ(status, 0);
  waiting.end.set_value();
  user.join();
  ender.join();
}

TEST(SampledAllocationsTest, TheSamplerCountsUntilAPointIsReached) {
  // The first event of a thread is always taken; then the distance is drawn.
  AmountSampler sampler;
  ASSERT_TRUE(sampler.Count(1));
  static_cast<void>(sampler.Take(1, kMaxSamplingInterval, 1));
  EXPECT_TRUE(sampler.Count(std::size_t{1} << 62)) << "no distance is as long";
}

TEST(ZeroedTableTest, ItsZerosAreATable) {
  static constinit ZeroedTable<LiveBlocks<>> table;
  EXPECT_FALSE(table->is_used());
  int block = 0;
  EXPECT_FALSE(table->MayHold(&block));
  EXPECT_EQ(static_cast<void*>(&*table), static_cast<void*>(table.bytes));
}

}  // namespace
}  // namespace strobe::internal
