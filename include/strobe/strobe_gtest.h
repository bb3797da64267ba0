// Profiles the slow tests of a GoogleTest program, one file a test.
//
//   #include <strobe/strobe_gtest.h>
//   int main(int argc, char** argv) {
//     testing::InitGoogleTest(&argc, argv);
//     strobe::ProfileSlowTests();
//     return RUN_ALL_TESTS();
//   }
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "strobe/named_profiles.h"

namespace strobe {

struct SlowTestOptions {
  // Tests that take at least this long get a file.
  double slow_s = 0.1;
  std::string directory = "strobe-profiles";
  ProfilerOptions profiler = NamedProfiles::ShortWork();
};

// Each test runs in a session of its own. If the test was slow, its profile becomes
// <directory>/<suite>.<test>.pb.gz, and the test's output says so. Profiled are the thread that
// runs the tests, and those that register with profiler(). A repeated test replaces its file.
class SlowTestProfiler : public ::testing::EmptyTestEventListener {
 public:
  explicit SlowTestProfiler(SlowTestOptions options = {})
      : slow_s_(options.slow_s),
        profiles_(std::move(options.directory), std::move(options.profiler)) {}

  BasicProfiler<NamedProfiles::Traits>& profiler() { return profiles_.profiler(); }

  void OnTestStart(const ::testing::TestInfo& /*test*/) override {
    profiles_.WarnOnce(profiles_.Begin());
  }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const auto elapsed_ms = static_cast<double>(test.result()->elapsed_time());
    if (elapsed_ms < slow_s_ * 1000) {
      profiles_.Drop();
      return;
    }
    const auto path = profiles_.Keep(absl::StrCat(test.test_suite_name(), ".", test.name()));
    if (path.ok()) {
      std::printf("[  PROFILE ] %s\n", path->c_str());
    } else {
      profiles_.WarnOnce(path.status());
    }
  }

 private:
  const double slow_s_;
  NamedProfiles profiles_;
};

// Appends a SlowTestProfiler to GoogleTest's listeners, which own it. Call it after InitGoogleTest.
inline SlowTestProfiler& ProfileSlowTests(SlowTestOptions options = {}) {
  auto* const profiler = new SlowTestProfiler(std::move(options));
  ::testing::UnitTest::GetInstance()->listeners().Append(profiler);
  return *profiler;
}

}  // namespace strobe
