#include "strobe/runtime/session/profile_maker.h"

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Every counter set to a number of its own, times `factor`.
Stats Counters(std::uint64_t factor) {
  Stats stats;
  stats.threads_ended = 24 * factor;
  stats.threads_refused = 1 * factor;
  stats.samples = 2 * factor;
  stats.drops = {3 * factor, 4 * factor};
  stats.stack_ends = {5 * factor, 6 * factor, 7 * factor, 8 * factor};
  stats.signals_foreign = 9 * factor;
  stats.signals_stale = 10 * factor;
  stats.handler_replaced = 11 * factor;
  stats.handler_time_ns = static_cast<std::int64_t>(12 * factor);
  stats.measured_samples = 13 * factor;
  stats.measured_ns = static_cast<std::int64_t>(130'000'000 * factor);
  stats.drains = 14 * factor;
  stats.collector_cpu_ns = static_cast<std::int64_t>(15 * factor);
  stats.stacks_overflowed = 16 * factor;
  stats.labels_overflowed = 28 * factor;
  stats.moments_dropped = 31 * factor;
  stats.spans_overflowed = 32 * factor;
  stats.threads_unlisted = 33 * factor;
  stats.module_refreshes = 17 * factor;
  stats.waits_abandoned = 18 * factor;
  stats.waits_walked = 28 * factor;
  stats.waits_interrupted = 29 * factor;
  stats.waits_hidden = 30 * factor;
  stats.polls_put_off = 22 * factor;
  stats.exports = 19 * factor;
  stats.exports_failed = 20 * factor;
  stats.exports_dropped = 22 * factor;
  stats.amount_dropped = static_cast<std::int64_t>(23 * factor);
  stats.periods_extended = 21 * factor;
  stats.outputs.resize(1);
  stats.outputs[0].exports = 25 * factor;
  stats.outputs[0].amount_dropped = static_cast<std::int64_t>(26 * factor);
  stats.out_of_memory = 27 * factor;
  return stats;
}

TEST(StatsBetween, SubtractsEveryCounter) {
  const Stats between = StatsBetween(Counters(3), Counters(10));
  const Stats expected = Counters(7);
  EXPECT_EQ(between.threads_ended, expected.threads_ended);
  EXPECT_EQ(between.threads_refused, expected.threads_refused);
  EXPECT_EQ(between.samples, expected.samples);
  EXPECT_EQ(between.drops, expected.drops);
  EXPECT_EQ(between.stack_ends, expected.stack_ends);
  EXPECT_EQ(between.signals_foreign, expected.signals_foreign);
  EXPECT_EQ(between.signals_stale, expected.signals_stale);
  EXPECT_EQ(between.handler_replaced, expected.handler_replaced);
  EXPECT_EQ(between.handler_time_ns, expected.handler_time_ns);
  EXPECT_EQ(between.measured_samples, expected.measured_samples);
  EXPECT_EQ(between.measured_ns, expected.measured_ns);
  EXPECT_EQ(between.drains, expected.drains);
  EXPECT_EQ(between.collector_cpu_ns, expected.collector_cpu_ns);
  EXPECT_EQ(between.stacks_overflowed, expected.stacks_overflowed);
  EXPECT_EQ(between.labels_overflowed, expected.labels_overflowed);
  EXPECT_EQ(between.moments_dropped, expected.moments_dropped);
  EXPECT_EQ(between.spans_overflowed, expected.spans_overflowed);
  EXPECT_EQ(between.threads_unlisted, expected.threads_unlisted);
  EXPECT_EQ(between.module_refreshes, expected.module_refreshes);
  EXPECT_EQ(between.waits_abandoned, expected.waits_abandoned);
  EXPECT_EQ(between.waits_walked, expected.waits_walked);
  EXPECT_EQ(between.waits_interrupted, expected.waits_interrupted);
  EXPECT_EQ(between.waits_hidden, expected.waits_hidden);
  EXPECT_EQ(between.polls_put_off, expected.polls_put_off);
  EXPECT_EQ(between.exports, expected.exports);
  EXPECT_EQ(between.exports_failed, expected.exports_failed);
  EXPECT_EQ(between.exports_dropped, expected.exports_dropped);
  EXPECT_EQ(between.amount_dropped, expected.amount_dropped);
  EXPECT_EQ(between.outputs.at(0).exports, expected.outputs[0].exports);
  EXPECT_EQ(between.outputs[0].amount_dropped, expected.outputs[0].amount_dropped);
  EXPECT_EQ(between.periods_extended, expected.periods_extended);
  EXPECT_EQ(between.out_of_memory, expected.out_of_memory);
}

TEST(StatsBetween, RatesAreThoseOfTheTimeBetween) {
  Stats earlier;
  earlier.measured_samples = 1000;
  earlier.measured_ns = 1'000'000'000;
  Stats later;
  later.measured_samples = 1050;
  later.measured_ns = 2'000'000'000;
  EXPECT_DOUBLE_EQ(StatsBetween(earlier, later).measured_rate_hz, 50);
  EXPECT_EQ(StatsBetween(later, later).measured_rate_hz, 0) << "nothing was measured";
}

TEST(StatsBetween, StatesStayAsTheyAreNow) {
  Stats earlier;
  earlier.threads_registered = 5;
  earlier.memory_bytes = 1000;
  earlier.last_export_error = "before";
  Stats later;
  later.threads_registered = 3;
  later.memory_bytes = 900;
  later.threads_on_timers = 1;
  const Stats between = StatsBetween(earlier, later);
  EXPECT_EQ(between.threads_registered, 3u);
  EXPECT_EQ(between.memory_bytes, 900u);
  EXPECT_EQ(between.threads_on_timers, 1u);
  EXPECT_EQ(between.last_export_error, "");
}

}  // namespace
}  // namespace strobe::internal
