#include "strobe/runtime/drain/collector_counters.h"

#include <new>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(CollectorCounters, StandInTheStatsUnderTheirNames) {
  CollectorCounters counters;
  counters.samples = 1;
  counters.measured_samples = 2;
  counters.measured_ns = 4'000'000;
  counters.drains = 3;
  counters.cpu_ns = 5;
  counters.SetOverflows({.stacks = 6, .labels = 22, .moments = 23, .spans = 24, .threads = 25});
  counters.code.refreshes = 7;
  counters.waits_abandoned = 8;
  counters.polls_put_off = 17;
  counters.handler_replaced = 9;
  counters.periods_extended = 10;
  counters.aggregator_bytes = 11;
  counters.code.table_bytes = 12;
  counters.code.tables = 13;
  counters.deferred_ends[static_cast<std::size_t>(StackEnd::kTruncated)] = 14;
  counters.unreadable = 15;
  counters.no_memory = 18;
  counters.periods_dropped = 19;
  counters.amount_dropped = 20;
  counters.out_of_memory = 21;
  counters.code.SetUnread("/lib/x");
  Stats stats;
  stats.memory_bytes = 100;
  counters.AddTo(stats);
  EXPECT_EQ(stats.samples, 1u);
  EXPECT_EQ(stats.measured_samples, 2u);
  EXPECT_EQ(stats.drains, 3u);
  EXPECT_EQ(stats.collector_cpu_ns, 5);
  EXPECT_EQ(stats.stacks_overflowed, 6u);
  EXPECT_EQ(stats.labels_overflowed, 22u);
  EXPECT_EQ(stats.moments_dropped, 23u);
  EXPECT_EQ(stats.spans_overflowed, 24u);
  EXPECT_EQ(stats.threads_unlisted, 25u);
  EXPECT_EQ(stats.module_refreshes, 7u);
  EXPECT_EQ(stats.waits_abandoned, 8u);
  EXPECT_EQ(stats.polls_put_off, 17u);
  EXPECT_EQ(stats.handler_replaced, 9u);
  EXPECT_EQ(stats.periods_extended, 10u);
  EXPECT_EQ(stats.memory_bytes, 123u);
  EXPECT_EQ(stats.unwind_tables, 13u);
  EXPECT_EQ(stats.stacks_deferred, 14u);
  EXPECT_EQ(stats.stack_ends[static_cast<std::size_t>(StackEnd::kTruncated)], 14u);
  EXPECT_EQ(stats.drops[static_cast<std::size_t>(DropReason::kUnreadable)], 15u);
  EXPECT_EQ(stats.drops[static_cast<std::size_t>(DropReason::kNoMemory)], 18u);
  EXPECT_EQ(stats.exports_dropped, 19u);
  EXPECT_EQ(stats.amount_dropped, 20);
  EXPECT_EQ(stats.out_of_memory, 21u);
  EXPECT_EQ(stats.unread_module, "/lib/x");
  EXPECT_DOUBLE_EQ(stats.measured_rate_hz, 500);
}

TEST(CollectorCounters, CountWhatMemoryRanOutIn) {
  CollectorCounters counters;
  EXPECT_TRUE(counters.HasMemoryFor([] {}));
  EXPECT_EQ(counters.out_of_memory, 0u);
  EXPECT_FALSE(counters.HasMemoryFor([] { throw std::bad_alloc(); }));
  EXPECT_EQ(counters.out_of_memory, 1u);
}

TEST(CollectorCounters, NoRateWithoutATimeToDivideBy) {
  Stats stats;
  CollectorCounters().AddTo(stats);
  EXPECT_EQ(stats.measured_rate_hz, 0);
}

}  // namespace
}  // namespace strobe::internal
