#include "../../../src/cli/pgo/pgo_report.h"

#include <string>

#include "../../symbolize/memory_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Module Program() {
  Module module;
  module.path = "/bin/x";
  return module;
}

CodeSamples::Place Sampled(std::int64_t amount, std::uint32_t discriminator = 2) {
  return {.frames = {{.function = "f",
                      .file = "f.cc",
                      .line = 12,
                      .declaration_line = 10,
                      .discriminator = discriminator}},
          .amount = amount};
}

BinarySamples SamplesOf(std::vector<CodeSamples::Place> places, bool is_current = true) {
  BinarySamples samples{.whole = 1'000'000'000, .builds = {}};
  samples.builds.push_back({.build_id = "ab", .is_current = is_current, .code = {}});
  samples.builds[0].code.places = std::move(places);
  return samples;
}

absl::StatusOr<PgoProfile> Make(const BinarySamples& samples) {
  return MakePgoProfile(samples, Program(), testing::MemoryFiles(), {}, DiscriminatorKind::kClang);
}

TEST(PgoReportTest, SaysHowMuchIsCovered) {
  const absl::StatusOr<PgoProfile> profile =
      Make(SamplesOf({Sampled(300'000'000), {.frames = {}, .amount = 100'000'000}}));
  ASSERT_TRUE(profile.ok()) << profile.status();
  const std::vector<std::string> report = ReportOf(*profile, "/bin/x", {"cpu", "nanoseconds"});
  ASSERT_THAT(report, SizeIs(1));
  EXPECT_THAT(report[0], AllOf(HasSubstr("1 function,"), HasSubstr("75.0 % of the 400.000 ms"),
                               HasSubstr("40.0 % of the profile")));
}

TEST(PgoReportTest, SaysThatDiscriminatorsAreMissing) {
  const absl::StatusOr<PgoProfile> profile = Make(SamplesOf({Sampled(1, 0)}));
  ASSERT_TRUE(profile.ok());
  EXPECT_THAT(ReportOf(*profile, "/bin/x", {"cpu", "nanoseconds"}).back(),
              HasSubstr("-fdebug-info-for-profiling"));
}

TEST(PgoReportTest, SaysHowMuchOfOtherBuildsIsGone) {
  BinarySamples samples = SamplesOf({Sampled(300)});
  samples.builds.push_back({.build_id = "cd", .code = {.places = {Sampled(100)}, .calls = {}}});
  const absl::StatusOr<PgoProfile> profile = Make(samples);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->gone_share, 1) << "there is no file that has the function";
  EXPECT_EQ(profile->functions.at("f").total(), 300);
  EXPECT_THAT(ReportOf(*profile, "/bin/x", {"cpu", "nanoseconds"})[1],
              AllOf(HasSubstr("25.0 %"), HasSubstr("100.0 %"), HasSubstr("left out")));
}

TEST(PgoReportTest, SaysWhatToDoWithoutLines) {
  const auto message = [](const CodeSamples::Place& place) {
    return std::string(Make(SamplesOf({place})).status().message());
  };
  EXPECT_THAT(message({.frames = {}, .amount = 1}),
              AllOf(HasSubstr("no debug information"), HasSubstr("-g1")));
  EXPECT_THAT(message({.frames = {{.function = "f", .file = "f.cc", .line = 3}}, .amount = 1}),
              AllOf(HasSubstr("where functions begin"), HasSubstr("-fdebug-info-for-profiling")));
}

}  // namespace
}  // namespace strobe::internal
