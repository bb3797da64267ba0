// The three lines that a program begins with, as README.md shows them, with nothing else included.
#include <strobe/strobe.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace {

class StrobeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "strobe_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST_F(StrobeTest, ThreeLinesLeaveAProfile) {
  setenv("STROBE_OUTPUT_DIRECTORY", directory_.c_str(), 1);
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
  unsetenv("STROBE_OUTPUT_DIRECTORY");
  EXPECT_EQ(stats.exports, 1u);
  EXPECT_EQ(std::filesystem::path(stats.last_export_path).parent_path(), directory_);
  EXPECT_GT(std::filesystem::file_size(stats.last_export_path), 0u);
}

}  // namespace
