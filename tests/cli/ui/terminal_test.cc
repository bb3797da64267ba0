#include "../../../src/cli/ui/terminal.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(TerminalTest, AFileIsNone) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Terminal terminal = FindTerminal();
  const bool is_taken = IsTerminalTaken();
  ::testing::internal::GetCapturedStdout();
  ::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(terminal.is_output);
  EXPECT_FALSE(terminal.shows_output);
  EXPECT_FALSE(terminal.shows_errors);
  EXPECT_EQ(terminal.columns, 0);
  EXPECT_FALSE(is_taken);
}

}  // namespace
}  // namespace strobe::internal
