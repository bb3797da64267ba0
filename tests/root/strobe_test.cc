// The three lines that a program begins with, as README.md shows them, with nothing else included.
#include <strobe/strobe.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/platform/native.h"

namespace {

TEST(StrobeTest, ThreeLinesLeaveAProfile) {
  const strobe::testing::TemporaryDirectory directory;
  strobe::testing::SetVariable("STROBE_OUTPUT_DIRECTORY", directory.path().string());
  strobe::Stats stats;
  {
    strobe::Profiler profiler;
    auto registration = profiler.RegisterThread("main");
    {
      strobe::ScopedProfiler session(profiler);
      if (!strobe::NativePlatform::Available().ok()) {
        EXPECT_EQ(session.status().code(), absl::StatusCode::kUnimplemented);
        GTEST_SKIP() << session.status().message();
      }
      ASSERT_TRUE(session.status().ok()) << session.status();
      ASSERT_TRUE(registration.status().ok()) << registration.status();
    }
    stats = profiler.stats();
  }
  strobe::testing::UnsetVariable("STROBE_OUTPUT_DIRECTORY");
  EXPECT_EQ(stats.exports, 1u);
  EXPECT_EQ(std::filesystem::path(stats.last_export_path).parent_path(), directory.path());
  EXPECT_GT(std::filesystem::file_size(stats.last_export_path), 0u);
}

}  // namespace
