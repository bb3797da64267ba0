#include "../../src/aggregate/merged_labels.h"

#include <array>
#include <cstdint>

#include "flat_profile.h"
#include "gtest/gtest.h"
#include "strobe/aggregate/aggregator.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

TEST(MergedLabelsTest, ThreadsOfOneIdAndNameAreOneAccount) {
  Aggregator aggregator(1, testing::kAmpleBytes);
  const std::array<std::int64_t, 1> one = {1};
  const auto add = [&](std::uint64_t id, const char* name) {
    const std::uint32_t thread = aggregator.AddThread(id, name);
    aggregator.Add(thread, {.leaf_first = std::array<Address, 1>{0x11}}, one);
  };
  add(7, "worker");
  add(7, "worker");
  add(8, "worker");
  aggregator.AddThread(9, "silent");
  const AggregatedPeriod period = aggregator.Take();
  ASSERT_EQ(period.rows.size(), 3u);
  MergedLabels labels(period);
  const std::uint32_t first = labels.OfRow(0);
  EXPECT_EQ(labels.OfRow(1), first);
  EXPECT_NE(labels.OfRow(2), first);
  EXPECT_EQ(labels.OfRow(0), first);
  EXPECT_EQ(labels.size(), 2u);
  EXPECT_EQ(labels.AccountOf(first), first) << "it has the thread's labels alone";
  EXPECT_EQ(labels.OfThread(0), first);
  EXPECT_EQ(labels.OfThread(3), MergedLabels::kNone) << "it has no row";
  EXPECT_EQ(labels.Take(first), ThreadLabels(7, "worker"));
}

}  // namespace
}  // namespace strobe::internal
