#include "strobe/worker/worker_profiler.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(WorkerProfiler, SaysWhatItHasNot) {
  WorkerProfiler profiler;
  EXPECT_EQ(profiler.Record(RecordingOptions()).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(profiler.RegisterCode(GeneratedCode()).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(WorkerProfiler, WrongOptionsBeginNothing) {
  WorkerProfiler wrong({.sampling = {.max_frames = -1}});
  EXPECT_EQ(wrong.Start().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.RegisterThread("main").status().code(), absl::StatusCode::kInvalidArgument);
  WorkerProfiler off({.enabled = false});
  EXPECT_EQ(off.Start().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace strobe
