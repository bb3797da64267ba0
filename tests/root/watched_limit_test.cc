#include "strobe/watched_limit.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "strobe/aggregate/reached_limits.h"

namespace strobe {
namespace {

using internal::ReachedLimits;

TEST(WatchedLimit, ADepthCountsOnceUntilItIsWithinTheLimitAgain) {
  WatchedLimit depth("queue depth", 100);
  const std::uint64_t before = ReachedLimits::count();
  for (const std::int64_t value : {0, 99, 100}) depth.Set(value);
  EXPECT_EQ(ReachedLimits::count(), before);
  for (const std::int64_t value : {101, 150, 200}) depth.Set(value);
  EXPECT_EQ(ReachedLimits::count(), before + 1);
  EXPECT_EQ(ReachedLimits::LastText(), "queue depth is 101, more than 100");
  for (const std::int64_t value : {100, 102}) depth.Set(value);
  EXPECT_EQ(ReachedLimits::count(), before + 2);
}

TEST(WatchedLimit, EachLatencyAboveTheLimitCounts) {
  WatchedLimit latency("latency_ns", 1'000'000);
  const std::uint64_t before = ReachedLimits::count();
  latency.Note(1'000'000);
  EXPECT_EQ(ReachedLimits::count(), before);
  latency.Note(1'000'001);
  latency.Note(2'000'000);
  EXPECT_EQ(ReachedLimits::count(), before + 2);
}

}  // namespace
}  // namespace strobe
