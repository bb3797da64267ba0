#include "strobe/platform/unsupported_platform.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "strobe/scoped_profiler.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {
namespace {

struct UnsupportedTraits : testing::ArchetypeTraits {
  using Platform = UnsupportedPlatform;
};

TEST(UnsupportedPlatform, ProfilerCompilesDoesNothingAndSaysWhy) {
  BasicProfiler<UnsupportedTraits> profiler;
  const auto registration = profiler.RegisterThread("main");
  EXPECT_EQ(registration.status().code(), absl::StatusCode::kUnimplemented);
  const absl::Status status = profiler.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(status.message().empty());
  EXPECT_THAT(profiler.Diagnose(),
              ::testing::HasSubstr("Profiling cannot work here: " + std::string(status.message())));
  EXPECT_EQ(profiler.Stop().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(profiler.stats().threads_refused, 1u);
}

TEST(UnsupportedPlatform, AScopeSaysOnceWhyItHasNoSession) {
  BasicProfiler<UnsupportedTraits> profiler;
  ::testing::internal::CaptureStderr();
  { const BasicScopedProfiler session(profiler); }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::StartsWith("strobe: cannot start: "));
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

}  // namespace
}  // namespace strobe
