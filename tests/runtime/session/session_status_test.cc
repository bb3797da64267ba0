#include "strobe/runtime/session/session_status.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(SessionStatus, SaysWhetherASessionIsMissingOrInTheWay) {
  EXPECT_EQ(NotRunning().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AlreadyRunning().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(NotRunning(), AlreadyRunning()) << "callers tell them apart";
}

}  // namespace
}  // namespace strobe::internal
