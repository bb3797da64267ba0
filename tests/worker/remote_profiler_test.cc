#include "strobe/worker/remote_profiler.h"

#include <gtest/gtest.h>

#include <chrono>

namespace strobe {
namespace {

TEST(RemoteProfiler, RecordsOnlyWhileItRuns) {
  RemoteProfiler profiler;
  EXPECT_EQ(profiler.Record(RecordingOptions()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(profiler.Record(std::chrono::milliseconds(1)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RemoteProfiler, WrongOptionsBeginNothing) {
  RemoteProfiler wrong({.sampling = {.max_frames = -1}});
  EXPECT_EQ(wrong.Start().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.RegisterThread("main").status().code(), absl::StatusCode::kInvalidArgument);
  RemoteProfiler off({.enabled = false});
  EXPECT_EQ(off.Start().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace strobe
