#include "strobe/core/recording_options.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using std::chrono::milliseconds;

TEST(RecordingOptions, ADurationHasALimit) {
  EXPECT_TRUE(Validate({.duration = milliseconds(1)}).ok());
  EXPECT_TRUE(Validate({.duration = kMaxRecordingDuration}).ok());
  for (const milliseconds duration :
       {milliseconds(0), milliseconds(-1), kMaxRecordingDuration + milliseconds(1)}) {
    const absl::Status status = Validate({.duration = duration});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("duration: expected 1 to 86400000 ms"));
  }
}

TEST(RecordingOptions, WhatWasBeforeIsInsteadOfADuration) {
  EXPECT_TRUE(Validate({.last = milliseconds(1)}).ok());
  EXPECT_TRUE(Validate({.last = kMaxRecordingDuration}).ok());
  EXPECT_FALSE(Validate({.last = milliseconds(-1)}).ok());
  EXPECT_FALSE(Validate({.last = kMaxRecordingDuration + milliseconds(1)}).ok());
  EXPECT_FALSE(Validate({.duration = milliseconds(1), .last = milliseconds(1)}).ok());
  EXPECT_FALSE(Validate({.last = milliseconds(1), .frequency_hz = 100}).ok());
}

TEST(RecordingOptions, ARateHasALimit) {
  for (const double frequency_hz : {0.0, 0.5, kMaxRecordingFrequencyHz})
    EXPECT_TRUE(Validate({.duration = milliseconds(1), .frequency_hz = frequency_hz}).ok());
  for (const double frequency_hz : {-1.0, kMaxRecordingFrequencyHz + 1, std::nan("")}) {
    const absl::Status status =
        Validate({.duration = milliseconds(1), .frequency_hz = frequency_hz});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("frequency_hz: expected 0 to 10000"));
  }
}

}  // namespace
}  // namespace strobe
