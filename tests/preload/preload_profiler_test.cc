#include "../../src/preload/preload_profiler.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// The model that libstrobe-preload.so has.
TEST(PreloadProfilerTest, AProfilerIsMadeOfTheOptions) {
  PreloadProfiler& profiler = MakePreloadProfiler({.sampling = {.cpu_frequency_hz = -1}});
  EXPECT_EQ(profiler.Start().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(profiler.Stop().ok()) << "there is no session";
}

TEST(PreloadProfilerTest, AThreadMayRegisterBeforeTheSession) {
  PreloadProfiler& profiler = MakePreloadProfiler({});
  const Registration registration = profiler.RegisterThread("main");
  EXPECT_TRUE(registration.status().ok()) << registration.status();
}

}  // namespace
}  // namespace strobe::internal
