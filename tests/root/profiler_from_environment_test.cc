#include "strobe/profiler_from_environment.h"

#include <filesystem>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/core/options.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

class ProfilerFromEnvironmentTest : public ::testing::Test {
 protected:
  ProfilerFromEnvironmentTest() { UnsetAll(); }
  ~ProfilerFromEnvironmentTest() override { UnsetAll(); }

  static void UnsetAll() {
    for (const OptionRow& row : OptionTable()) testing::UnsetVariable(row.variable.data());
  }
  [[nodiscard]] std::string Directory() const { return (directory_.path() / "profiles").string(); }
  [[nodiscard]] bool HasProfiles() const { return std::filesystem::exists(Directory()); }

  static void ExpectNothing(ProfilerFromEnvironment& profiler) {
    EXPECT_EQ(profiler.status().code(), absl::StatusCode::kCancelled) << profiler.status();
    EXPECT_EQ(profiler.profiler(), nullptr);
    std::thread([&] {
      EXPECT_EQ(profiler.RegisterThread("worker").status().code(), absl::StatusCode::kCancelled);
    }).join();
  }

 private:
  testing::TemporaryDirectory directory_;
};

TEST_F(ProfilerFromEnvironmentTest, WithoutAVariableThereIsNothing) {
  {
    ProfilerFromEnvironment profiler("main", {.exporter = {.directory = Directory()}});
    ExpectNothing(profiler);
  }
  EXPECT_FALSE(HasProfiles());
}

TEST_F(ProfilerFromEnvironmentTest, AnEmptyVariableDoesNotAsk) {
  testing::SetVariable("STROBE_CPU_FREQUENCY_HZ", "");
  {
    ProfilerFromEnvironment profiler("main", {.exporter = {.directory = Directory()}});
    ExpectNothing(profiler);
  }
  EXPECT_FALSE(HasProfiles());
}

TEST_F(ProfilerFromEnvironmentTest, TheKillSwitchBeatsTheOtherVariables) {
  testing::SetVariable("STROBE_OUTPUT_DIRECTORY", Directory());
  testing::SetVariable("STROBE_ENABLED", "0");
  {
    ProfilerFromEnvironment profiler("main");
    ExpectNothing(profiler);
  }
  EXPECT_FALSE(HasProfiles());
}

TEST_F(ProfilerFromEnvironmentTest, AVariableAsksForASession) {
  for (const char* variable : {"STROBE_OUTPUT_DIRECTORY", "STROBE_ENABLED"}) {
    UnsetAll();
    const bool is_directory = std::string(variable) == "STROBE_OUTPUT_DIRECTORY";
    testing::SetVariable(variable, is_directory ? Directory() : "1");
    ProfilerOptions options;
    if (!is_directory) options.exporter.directory = Directory();
    {
      ProfilerFromEnvironment profiler("main", options);
      ASSERT_NE(profiler.profiler(), nullptr);
      if (!NativePlatform::Available().ok()) {
        EXPECT_EQ(profiler.status().code(), absl::StatusCode::kUnimplemented);
        GTEST_SKIP() << profiler.status().message();
      }
      EXPECT_TRUE(profiler.status().ok()) << profiler.status();
      EXPECT_EQ(profiler.RegisterThread("again").status().code(), absl::StatusCode::kAlreadyExists)
          << "the calling thread is registered";
      std::thread([&] { EXPECT_TRUE(profiler.RegisterThread("worker").status().ok()); }).join();
      EXPECT_FALSE(profiler.profiler()->Start().ok()) << "a session runs";
    }
    EXPECT_TRUE(HasProfiles()) << variable;
    std::filesystem::remove_all(Directory());
  }
}

TEST_F(ProfilerFromEnvironmentTest, WhatCannotBeReadAsksTooAndKeepsItsDefault) {
  testing::SetVariable("STROBE_EXPORT_PERIOD_S", "often");
  ProfilerFromEnvironment profiler("main", {.exporter = {.directory = Directory()}});
  ASSERT_NE(profiler.profiler(), nullptr);
  EXPECT_EQ(*profiler.profiler()->options().exporter.period_s,
            *ProfilerOptions().exporter.period_s);
}

TEST_F(ProfilerFromEnvironmentTest, WhatCannotStartIsTheStatus) {
  testing::SetVariable("STROBE_ENABLED", "1");
  ProfilerFromEnvironment profiler(
      "main", {.sampling = {.cpu_frequency_hz = -1}, .exporter = {.directory = Directory()}});
  EXPECT_FALSE(profiler.status().ok());
  EXPECT_NE(profiler.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(HasProfiles());
}

}  // namespace
}  // namespace strobe
