#include "strobe/encode/speedscope_encoder.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Speedscope, EncoderConformance, SpeedscopeEncoder);

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string SpeedscopeText(const SampleProfile& sample) {
  const absl::StatusOr<std::string> text =
      SpeedscopeEncoder().Encode(sample.profile, sample.symbols);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// tests/readers opens the sample profiles in speedscope itself; this is the text of a small one.
TEST(SpeedscopeEncoderTest, OneProfileForEachThreadAndValueType) {
  SampleProfile sample{"", ProfileHead(), {}};
  ProfileBuilder builder(sample.profile);
  builder.AddThread(7, "main");
  const std::uint32_t main = builder.AddFrame(0x10, Frame::kNoModule);
  const std::uint32_t leaf = builder.AddFrame(0x20, Frame::kNoModule);
  sample.symbols.functions = {{.name = "main", .system_name = "main", .file = "a.cc", .line = 3},
                              {.name = "Leaf<int>(int)", .system_name = "_Z4LeafIiEvi"}};
  sample.symbols.frames = {{.function = 0, .line = 5}, {.function = 1}};
  builder.AddSample(0, {main, leaf}, {2, 20});
  builder.AddSample(0, {main}, {0, 5});
  builder.AddSample(0, {}, {1, 0});
  EXPECT_EQ(
      SpeedscopeText(sample),
      R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"strobe",)"
      R"("name":"sample_program","shared":{"frames":[{"name":"main","file":"a.cc","line":3},)"
      R"({"name":"Leaf"},{"name":"[no stack]"}]},"profiles":[)"
      R"({"type":"sampled","name":"main (7), samples","unit":"none","startValue":0,"endValue":3,)"
      R"("samples":[[0,1],[2]],"weights":[2,1]},)"
      R"({"type":"sampled","name":"main (7), cpu","unit":"nanoseconds","startValue":0,)"
      R"("endValue":25,"samples":[[0,1],[0]],"weights":[20,5]}],"activeProfileIndex":1})");
}

TEST(SpeedscopeEncoderTest, InlinedFunctionsAndLabelsAreFrames) {
  const std::string text = SpeedscopeText(DetailedProfile());
  EXPECT_THAT(text, HasSubstr(R"({"name":"sample::Step","file":"/src/sample/step.h","line":5})"));
  EXPECT_THAT(text, HasSubstr(R"({"name":"[request=check;out]"})"));
  EXPECT_THAT(text, HasSubstr(R"("samples":[[0,3,2,1],[14,15,0,3,2,1,4],)"))
      << "labels, main, Busy, Loop, Step, sample_write";
}

TEST(SpeedscopeEncoderTest, MomentsComeInOrderOfTimeAndThenTheRest) {
  EXPECT_THAT(SpeedscopeText(DetailedProfile()), HasSubstr(R"("weights":[1,1,1,1,68,18,)"));
}

TEST(SpeedscopeEncoderTest, ThreadsWithoutValuesAreLeftOut) {
  EXPECT_THAT(SpeedscopeText(SmallProfile()), Not(HasSubstr(R"(main (4242), wall)")));
  EXPECT_THAT(SpeedscopeText(EmptyProfile()),
              EndsWith(R"("profiles":[{"type":"sampled","name":"no samples","unit":"none",)"
                       R"("startValue":0,"endValue":0,"samples":[],"weights":[]}],)"
                       R"("activeProfileIndex":0})"))
      << "the viewer refuses a file without profiles";
}

}  // namespace
}  // namespace strobe::testing
