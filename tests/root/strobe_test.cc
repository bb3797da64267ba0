// The three lines that a program begins with, as README.md shows them, with nothing else included.
#include <strobe/strobe.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

// The child's profiler has the parent's options, and nothing to complain of that the parent has not said.
TEST_F(StrobeTest, AForkDoesNotRepeatWhatIsWrongInTheEnvironment) {
  setenv("STROBE_MAX_FRAMES", "many", 1);
  setenv("STROBE_WALL_FREQUENCY_HZ", "7", 1);
  ::testing::internal::CaptureStderr();
  {
    strobe::Profiler profiler;
    const pid_t child = fork();
    if (child == 0) _exit(*profiler.options().sampling.wall_frequency_hz == 7 ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  unsetenv("STROBE_MAX_FRAMES");
  unsetenv("STROBE_WALL_FREQUENCY_HZ");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(said.find("strobe: STROBE_MAX_FRAMES"), 0u) << said;
}

}  // namespace
