#include "../../../src/cli/record/record.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Whole recordings are tested in tests/preload/record_test.py and tests/process.
TEST(RecordTest, WhatCannotBeRunIsSaidAsAShellDoes) {
  for (const auto record : {&RecordPreloaded, &RecordPerf}) {
    RecordingOutput output({}, Terminal());
    ::testing::internal::CaptureStderr();
    RecordOptions options;
    options.command = {"/no/such/program"};
    const int status = record(options, output);
    const std::string said = ::testing::internal::GetCapturedStderr();
    if (said.find(" only\n") != std::string::npos) {
      EXPECT_EQ(status, kFailed) << "this system records nothing that way";
    } else {
      EXPECT_EQ(status, kNotFound) << said;
      EXPECT_THAT(said, ::testing::HasSubstr("/no/such/program"));
    }
  }
}

TEST(RecordTest, ServersGetAProfileAMinuteWhereNothingElseIsAsked) {
  RecordOptions options;
  EXPECT_EQ(PeriodS(options), 0);
  options.output.destinations.push_back({"otlp", {}});
  EXPECT_EQ(PeriodS(options), 60);
  options.output.path = "one.pb.gz";
  EXPECT_EQ(PeriodS(options), 0) << "one file has all";
  options.output.path = "one.%t.pb.gz";
  EXPECT_EQ(PeriodS(options), 60);
  options.every_s = 7;
  EXPECT_EQ(PeriodS(options), 7);
}

}  // namespace
}  // namespace strobe::internal
