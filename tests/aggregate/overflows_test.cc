#include "strobe/aggregate/overflows.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(Overflows, AddUpAndStandInTheStats) {
  const Overflows before{.stacks = 1, .labels = 2, .moments = 3, .spans = 4, .threads = 5};
  const Overflows more{.stacks = 10, .labels = 20, .moments = 30, .spans = 40, .threads = 50};
  EXPECT_EQ(before + more - before, more);
  Stats stats;
  (before + more).SetIn(stats);
  EXPECT_EQ(stats.stacks_overflowed, 11u);
  EXPECT_EQ(stats.labels_overflowed, 22u);
  EXPECT_EQ(stats.moments_dropped, 33u);
  EXPECT_EQ(stats.spans_overflowed, 44u);
  EXPECT_EQ(stats.threads_unlisted, 55u);
}

}  // namespace
}  // namespace strobe
