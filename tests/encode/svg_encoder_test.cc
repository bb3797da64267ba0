#include "strobe/encode/svg_encoder.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/stack.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Svg, EncoderConformance, SvgEncoder);

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string PictureOf(const SampleProfile& sample, SvgOptions options = {}) {
  const absl::StatusOr<std::string> svg =
      SvgEncoder(std::move(options)).Encode(sample.profile, sample.symbols);
  EXPECT_TRUE(svg.ok()) << svg.status();
  return svg.value_or("");
}

// Functions with these names and amounts, none of which calls another.
SampleProfile FunctionsOf(std::initializer_list<std::pair<std::string, std::int64_t>> functions) {
  SampleProfile sample{"", ProfileHead(), {}};
  ProfileBuilder builder(sample.profile);
  builder.AddThread(7, "main");
  for (const auto& [name, amount] : functions) {
    const std::uint32_t frame =
        builder.AddFrame(0x10 + sample.profile.frames.size(), Frame::kNoModule);
    sample.symbols.functions.push_back({.name = name, .system_name = name});
    sample.symbols.frames.push_back({.function = frame});
    builder.AddSample(0, {frame}, {1, amount});
  }
  return sample;
}

// tests/readers parses pictures; this is the text of a small one.
TEST(SvgEncoderTest, ABoxHasItsNameItsAmountAndItsShare) {
  const std::string svg = PictureOf(FunctionsOf({{"Run", 3'000'000}, {"Wait", 1'000'000}}));
  EXPECT_THAT(svg, HasSubstr("<title>sample_program: cpu, 4.000 ms</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>Run: 3.000 ms, 75.0 %; in itself 3.000 ms</title>"
                             R"(<rect x="10.00" y="88" width="900.00" height="17")"));
  EXPECT_THAT(svg, HasSubstr("<title>Wait: 1.000 ms, 25.0 %; in itself 1.000 ms</title>"
                             R"(<rect x="910.00" y="88" width="300.00" height="17")"));
  EXPECT_THAT(svg, HasSubstr(R"(<text x="913.00" y="101">Wait</text>)"));
}

TEST(SvgEncoderTest, NamesAreCutToTheirBoxes) {
  const std::string name(400, 'n');
  const std::string svg = PictureOf(FunctionsOf({{name, 9}, {"f\u00FC\u00FC\u00FCr", 1}}));
  EXPECT_THAT(svg, AllOf(HasSubstr(std::string(159, 'n') + "\u2026</text>"),
                         Not(HasSubstr(std::string(160, 'n') + "\u2026"))));
  EXPECT_THAT(svg, HasSubstr(">f\u00FC\u00FC\u00FCr</text>"));
}

TEST(SvgEncoderTest, TextsAreEscaped) {
  const std::string svg = PictureOf(FunctionsOf({{"a<b>&\"\x01\uFFFF\xFF]]>", 1}}));
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b&gt;&amp;\" ??]]&gt;: 1 ns"));
}

TEST(SvgEncoderTest, WhatIsNotCodeStandsInTheHead) {
  SampleProfile sample = FunctionsOf({{"Run", 100'000}});
  ProfileBuilder builder(sample.profile);
  const std::uint32_t residual = builder.AddPseudoFrame(PseudoFrame::kResidual);
  sample.symbols.frames.emplace_back();
  builder.AddSample(0, {residual}, {0, 10});
  const std::string svg = PictureOf(sample);
  EXPECT_THAT(svg, HasSubstr("not code: [residual] 0.0 %"));
  EXPECT_THAT(svg, HasSubstr("too narrow to be drawn: 1, 0.0 %"));
}

TEST(SvgEncoderTest, ShowsTheValueTypeThatIsAskedFor) {
  const SampleProfile sample = FunctionsOf({{"Run", 100}});
  EXPECT_THAT(PictureOf(sample, {.value_type = "samples"}), HasSubstr("samples, 1</title>"));
  EXPECT_EQ(SvgEncoder({.value_type = "wall"}).Encode(sample.profile, sample.symbols).status(),
            absl::InvalidArgumentError("the profile has no value type wall"));
}

TEST(SvgEncoderTest, ADeepProfileHasAPictureOfBoundedHeight) {
  SampleProfile sample = FunctionsOf({{"Recurse", 1}});
  ProfileBuilder builder(sample.profile);
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < 2 * SvgEncoder::kMaxLevels; ++i) node = builder.Child(node, 0);
  sample.profile.samples[0].stack = node;
  const std::string svg = PictureOf(sample);
  EXPECT_THAT(svg, HasSubstr(absl::StrCat("<title>", SvgEncoder::kMaxLevels,
                                          " too narrow to be drawn: 1 ns, 100.0 %")));
}

}  // namespace
}  // namespace strobe::testing
