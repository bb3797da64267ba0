#include "strobe/scoped_profiler.h"

#include <string>
#include <type_traits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/manual_traits.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ManualExporter;
using testing::ManualPlatform;
using TestProfiler = BasicProfiler<testing::ManualTraits>;

static_assert(!std::is_copy_constructible_v<BasicScopedProfiler<testing::ManualTraits>>);

class ScopedProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualExporter::Take();
    ManualExporter::FailNext(0);
  }
  static std::vector<std::string> Lines() {
    return ManualPlatform::With([](auto& state) { return state.lines; });
  }
};

TEST_F(ScopedProfilerTest, TheScopeIsTheSession) {
  TestProfiler profiler;
  {
    const BasicScopedProfiler session(profiler);
    EXPECT_TRUE(session.status().ok()) << session.status();
    EXPECT_FALSE(profiler.Start().ok());
    EXPECT_THAT(ManualExporter::Take(), IsEmpty());
  }
  EXPECT_EQ(ManualExporter::Take().size(), 1u);
  EXPECT_FALSE(profiler.Stop().ok());
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(ScopedProfilerTest, WhatCannotStartIsSaidInOneLineAndTheProgramGoesOn) {
  TestProfiler profiler({.sampling = {.cpu_frequency_hz = -1}});
  {
    const BasicScopedProfiler session(profiler);
    EXPECT_FALSE(session.status().ok());
  }
  EXPECT_THAT(
      Lines(),
      ElementsAre(::testing::StartsWith("strobe: cannot start: sampling.cpu_frequency_hz")));
}

TEST_F(ScopedProfilerTest, SwitchedOffIsNothingToTalkAbout) {
  TestProfiler profiler({.enabled = false});
  { const BasicScopedProfiler session(profiler); }
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(ScopedProfilerTest, AnInnerSessionEndsNothing) {
  TestProfiler profiler;
  const BasicScopedProfiler outer(profiler);
  {
    const BasicScopedProfiler inner(profiler);
    EXPECT_EQ(inner.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(profiler.Start().ok()) << "the outer one runs on";
}

TEST_F(ScopedProfilerTest, AProfileThatIsNotExportedIsSaidSo) {
  TestProfiler profiler;
  {
    const BasicScopedProfiler session(profiler);
    ManualExporter::FailNext(1);
  }
  EXPECT_THAT(
      Lines(),
      ElementsAre("strobe: the last profile was not exported: the exporter was told to fail"));
}

// An exporter's own FailedPrecondition is not that of a session that does not run.
TEST_F(ScopedProfilerTest, NoCodeOfAnExportersErrorHidesIt) {
  TestProfiler profiler;
  {
    const BasicScopedProfiler session(profiler);
    ManualExporter::FailNext(1, absl::FailedPreconditionError("the directory is gone"));
  }
  EXPECT_THAT(Lines(),
              ElementsAre("strobe: the last profile was not exported: the directory is gone"));
}

TEST_F(ScopedProfilerTest, ASessionStoppedByHandIsNoFailure) {
  TestProfiler profiler;
  {
    const BasicScopedProfiler session(profiler);
    EXPECT_TRUE(profiler.Stop().ok());
  }
  EXPECT_THAT(Lines(), IsEmpty());
}

}  // namespace
}  // namespace strobe
