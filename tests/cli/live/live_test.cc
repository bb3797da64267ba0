#include "../../../src/cli/live/live.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ui/exit_status.h"

namespace strobe::internal {
namespace {

// What it shows is tested in tests/process/linux/live_test.py.
TEST(RunLiveTest, SaysWhyThereIsNothingToWatch) {
  RecordOptions recording;
  recording.processes = {0x3FFFFFFF};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunLive(recording, {}, Terminal()), kFailed);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(::testing::StartsWith("strobe: "), ::testing::EndsWith("\n")));
}

}  // namespace
}  // namespace strobe::internal
