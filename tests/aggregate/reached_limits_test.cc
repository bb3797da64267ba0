#include "strobe/aggregate/reached_limits.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(ReachedLimits, CountsEachAndKeepsTheLast) {
  const std::uint64_t before = ReachedLimits::count();
  ReachedLimits::Note("depth", 5, 4);
  ReachedLimits::Note("latency_ns", 20, 10);
  EXPECT_EQ(ReachedLimits::count(), before + 2);
  EXPECT_EQ(ReachedLimits::LastText(), "latency_ns is 20, more than 10");
}

TEST(ReachedLimits, ALongNameIsCut) {
  ReachedLimits::Note(std::string(1000, 'x'), 2, 1);
  EXPECT_EQ(ReachedLimits::LastText(),
            std::string(ReachedLimits::kMaxNameBytes, 'x') + " is 2, more than 1");
}

}  // namespace
}  // namespace strobe::internal
