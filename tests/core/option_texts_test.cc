#include "strobe/core/settings/option_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

std::vector<std::string> Given(ProfilerOptions options, const Variables& variables) {
  const Environment environment = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  ApplyEnvironment(options, environment, [](const std::string& /*line*/) {});
  return GivenOptions(options, environment);
}

TEST(GivenOptions, SayWhoHasGivenEach) {
  ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 250;
  options.exporter.directory = "here";
  EXPECT_THAT(
      Given(options, {{"STROBE_EXPORT_PERIOD_S", "5"}, {"STROBE_OUTPUT_DIRECTORY", "there"}}),
      ElementsAre("sampling.cpu_frequency_hz=250 by code",
                  "exporter.directory=here by code, not by STROBE_OUTPUT_DIRECTORY",
                  "exporter.period_s=5 by STROBE_EXPORT_PERIOD_S"));
}

TEST(GivenOptions, LeaveOutDefaultsAndWhatIsNotAccepted) {
  EXPECT_THAT(Given({}, {{"STROBE_MAX_FRAMES", "none"}, {"HOME", "/"}}), IsEmpty());
  // A default that a profiler's traits have set is neither code's nor the environment's.
  ProfilerOptions options;
  options.threads.ring_bytes = Option<std::int64_t>::Default{1 << 18};
  EXPECT_THAT(Given(options, {}), IsEmpty());
}

TEST(GivenOptions, TheKillSwitchBeatsCode) {
  ProfilerOptions options;
  options.enabled = true;
  EXPECT_THAT(Given(options, {{"STROBE_ENABLED", "0"}}),
              ElementsAre("enabled=0 by STROBE_ENABLED"));
}

}  // namespace
}  // namespace strobe::internal
