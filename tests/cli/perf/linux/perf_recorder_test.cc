#include "../../../../src/cli/perf/linux/perf_recorder.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "../../../../src/cli/perf/linux/perf_request.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

PerfEventOptions TaskClock() {
  auto requests = ParsePerfRequests("task-clock", "/sys/kernel/tracing");
  EXPECT_TRUE(requests.ok()) << requests.status();
  return {.requests = *std::move(requests), .ring_bytes = std::size_t{1} << 16};
}

TEST(PerfRecorderTest, AProcessThatDoesNotExistIsAnError) {
  PerfRecorder recorder(TaskClock(), {});
  const absl::Status status = recorder.Attach(0x3FFFFFFF);
  ASSERT_FALSE(status.ok());
  EXPECT_FALSE(status.message().empty());
}

TEST(PerfRecorderTest, ARecordingOfNothingIsNoProfile) {
  PerfRecorder recorder(TaskClock(), {});
  EXPECT_EQ(recorder.counts().samples, 0u);
  EXPECT_FALSE(recorder.Finish(absl::OkStatus()).ok());
}

TEST(PerfRecorderTest, AThreadThatDoesNotExistIsAnError) {
  PerfRecorder recorder(TaskClock(), {});
  EXPECT_TRUE(absl::IsNotFound(recorder.AttachThread(0x3FFFFFFF)));
}

TEST(PerfRecorderTest, WhatIsNoControlGroupIsAnError) {
  constexpr int kNoFile = -1;
  PerfRecorder recorder(TaskClock(), {});
  EXPECT_FALSE(recorder.AttachMachine(kNoFile).ok());
}

TEST(PerfRecorderTest, RecordsWhatARunningProcessDoes) {
  PerfEventOptions options = TaskClock();
  options.hz = 999;
  PerfRecorder recorder(std::move(options), {});
  const absl::Status status = recorder.Attach(static_cast<std::uint32_t>(getpid()));
  if (!status.ok()) GTEST_SKIP() << status.message();
  volatile std::uint64_t work = 0;
  for (int round = 0; round < 1000 && recorder.counts().samples < 2; ++round) {
    for (int i = 0; i < 1'000'000; ++i) work = work + 1;
    const absl::Status collected = recorder.Collect({}, std::chrono::milliseconds(0));
    ASSERT_TRUE(collected.ok()) << collected;
  }
  EXPECT_GE(recorder.counts().samples, 2u);
  const auto loaded = recorder.Finish(absl::UnavailableError("the ring is gone"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE(loaded->profile.samples.empty());
  EXPECT_THAT(loaded->comments, ::testing::Contains(::testing::HasSubstr("the ring is gone")))
      << "what ended the recording";
}

}  // namespace
}  // namespace strobe::internal
