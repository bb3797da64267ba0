#include "strobe/aggregate/overflows.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(Overflows, AddUpAndStandInTheStats) {
  const Overflows before{.stacks = 1, .labels = 2, .moments = 3, .threads = 4};
  const Overflows more{.stacks = 10, .labels = 20, .moments = 30, .threads = 40};
  EXPECT_EQ(before + more - before, more);
  Stats stats;
  (before + more).SetIn(stats);
  EXPECT_EQ(stats.stacks_overflowed, 11u);
  EXPECT_EQ(stats.labels_overflowed, 22u);
  EXPECT_EQ(stats.moments_dropped, 33u);
  EXPECT_EQ(stats.threads_unlisted, 44u);
}

}  // namespace
}  // namespace strobe
