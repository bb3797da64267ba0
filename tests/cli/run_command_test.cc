#include "../../src/cli/run_command.h"

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(RunCommand, DoesWhatTheArgumentsOfMainSay) {
  std::string program = "strobe";
  std::string argument = "--version";
  std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
  ::testing::internal::CaptureStdout();
  const int status = RunCommand(2, arguments.data());
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), ::testing::StartsWith("strobe "));
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace strobe::internal
