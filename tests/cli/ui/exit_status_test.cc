#include "../../../src/cli/ui/exit_status.h"

#include <set>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(ExitStatusTest, AreDistinctAndNoneIsTakenForASignal) {
  const std::set<int> all = {kFailed, kWrongUse, kBeyondLimit, kCannotRun, kNotFound};
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(kRegression, kFailed) << "of strobe ci, which fails with kWrongUse";
  EXPECT_GT(*all.begin(), 0) << "0 is success";
  EXPECT_LT(*all.rbegin(), 128) << "a shell has 128 and more for programs that a signal has ended";
}

}  // namespace
}  // namespace strobe::internal
