#include "../../src/preload/preload_options.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/core/settings/known_variables.h"

namespace strobe::internal {
namespace {

// Variables that are gone at the end of a test.
class PreloadOptionsTest : public ::testing::Test {
 protected:
  static constexpr const char* kNames[] = {
      "STROBE_CPU_FREQUENCY_HZ", "STROBE_RECORD_CPU_FREQUENCY_HZ",
      "STROBE_ENABLED",          "STROBE_RECORD_ENABLED",
      "STROBE_WORKER",           "STROBE_RECORD_WORKER"};
  PreloadOptionsTest() { UnsetAll(); }
  ~PreloadOptionsTest() override { UnsetAll(); }
  static void UnsetAll() {
    for (const char* const name : kNames) testing::UnsetVariable(name);
  }
};

TEST_F(PreloadOptionsTest, NobodyAsksForASession) {
  EXPECT_FALSE(PreloadOptions().has_value());
  testing::SetVariable("STROBE_CPU_FREQUENCY_HZ", "");
  EXPECT_FALSE(PreloadOptions().has_value()) << "an empty value says nothing";
}

TEST_F(PreloadOptionsTest, VariablesOfEitherNameAskForOne) {
  testing::SetVariable("STROBE_CPU_FREQUENCY_HZ", "50");
  EXPECT_TRUE(PreloadOptions().has_value());
  testing::SetVariable("STROBE_RECORD_CPU_FREQUENCY_HZ", "25");
  const std::optional<ProfilerOptions> options = PreloadOptions();
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(*options->sampling.cpu_frequency_hz, 25) << "what `strobe record` says comes first";
}

TEST_F(PreloadOptionsTest, OneMayForbidIt) {
  testing::SetVariable("STROBE_RECORD_CPU_FREQUENCY_HZ", "25");
  testing::SetVariable("STROBE_ENABLED", "0");
  EXPECT_FALSE(PreloadOptions().has_value());
  testing::UnsetVariable("STROBE_ENABLED");
  testing::SetVariable("STROBE_RECORD_ENABLED", "0");
  EXPECT_FALSE(PreloadOptions().has_value());
}

TEST_F(PreloadOptionsTest, ARecordingThatIsOverHasNoSession) {
  testing::SetVariable("STROBE_RECORD_CPU_FREQUENCY_HZ", "25");
  testing::SetVariable(kRecordingUntilVariable, std::to_string(INT64_MAX - 1));
  EXPECT_TRUE(PreloadOptions().has_value());
  testing::SetVariable(kRecordingUntilVariable, "1");
  EXPECT_FALSE(PreloadOptions().has_value());
  testing::UnsetVariable(kRecordingUntilVariable);
}

TEST_F(PreloadOptionsTest, AWorkerIsThereOnlyForTheLibraryItself) {
  testing::SetVariable("STROBE_WORKER", "1");
  ASSERT_TRUE(PreloadOptions().has_value());
  EXPECT_FALSE(*PreloadOptions()->worker.enabled) << "that is for the program's own profiler";
  testing::SetVariable("STROBE_RECORD_WORKER", "1");
  EXPECT_TRUE(*PreloadOptions()->worker.enabled);
}

TEST_F(PreloadOptionsTest, AValueThatIsNoneIsNamed) {
  testing::SetVariable("STROBE_RECORD_CPU_FREQUENCY_HZ", "often");
  ::testing::internal::CaptureStderr();
  const std::optional<ProfilerOptions> options = PreloadOptions();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("strobe: STROBE_RECORD_CPU_FREQUENCY_HZ"), std::string::npos) << said;
  EXPECT_TRUE(options.has_value()) << "it asks for a session all the same";
}

}  // namespace
}  // namespace strobe::internal
