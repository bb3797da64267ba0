#include "strobe/encode/folded_encoder.h"

#include <cstdint>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Folded, EncoderConformance, FoldedEncoder);

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string FoldedText(const SampleProfile& sample, const FoldedOptions& options = {}) {
  const absl::StatusOr<std::string> text =
      FoldedEncoder(options).Encode(sample.profile, sample.symbols);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

std::int64_t Sum(const std::string& text) {
  std::istringstream lines(text);
  std::int64_t sum = 0;
  for (std::string line; std::getline(lines, line);)
    sum += std::stoll(line.substr(line.rfind(' ') + 1));
  return sum;
}

TEST(FoldedEncoderTest, ALineForEachRowFromTheThreadToTheLeaf) {
  const std::string text = FoldedText(DetailedProfile());
  EXPECT_THAT(text, StartsWith("main;main;sample::Busy;sample::Loop;sample::Step 70\n"));
  EXPECT_THAT(text, HasSubstr("\nw\xC3\xB6rker 1;main;[libsample.so.6] 1\n"));
  EXPECT_THAT(text, HasSubstr("\nthread 4294967295;main;0xffffffff81000000 2\n"));
  EXPECT_THAT(text, HasSubstr("\nw\xC3\xB6rker 1;[no stack] 1\n"));
  EXPECT_THAT(text, Not(HasSubstr(" 0\n"))) << "rows without a value are left out";
}

TEST(FoldedEncoderTest, LabelsOfTheProgramStandBelowTheThread) {
  EXPECT_THAT(FoldedText(DetailedProfile()),
              HasSubstr("\nmain;[batch size=7];[request=check:out];main;sample::Busy;"));
  EXPECT_THAT(FoldedText(DetailedProfile(), {.threads = false}),
              HasSubstr("\n[batch size=7];[request=check:out];main;"));
  EXPECT_THAT(FoldedText(DetailedProfile(), {.threads = false, .labels = false}),
              StartsWith("main;sample::Busy;sample::Loop;sample::Step 70\n"
                         "main;sample::Busy;sample::Loop;sample::Step;sample_write 20\n"));
}

TEST(FoldedEncoderTest, LinesAddUpToTheColumn) {
  EXPECT_EQ(Sum(FoldedText(SmallProfile())), 105)
      << "counts, because readers make a sample of each";
  EXPECT_EQ(Sum(FoldedText(SmallProfile(), {.value_type = "cpu"})), 1'053'000'000);
  EXPECT_EQ(Sum(FoldedText(SmallProfile(), {.value_type = "wall"})), 300'000'000);
  SampleProfile sample = SmallProfile();
  sample.profile.value_types[0].unit = "things";
  EXPECT_EQ(Sum(FoldedText(sample)), 1'053'000'000) << "without a count, the default";
}

TEST(FoldedEncoderTest, NoTextCanBeTakenForSeveralFramesOrLines) {
  SampleProfile sample = SmallProfile();
  sample.symbols.functions[0].name = "a;b\nc";
  sample.profile.label_sets[0] = ThreadLabels(1, "{x;y");
  EXPECT_THAT(FoldedText(sample), StartsWith("(x:y;a:b c;sample::Busy 70\n"));
}

TEST(FoldedEncoderTest, WithoutValuesALineSaysSo) {
  EXPECT_EQ(FoldedText(EmptyProfile()), "[no samples] 0\n");
  EXPECT_EQ(FoldedText({.name = "", .profile = {}, .symbols = {}}), "[no samples] 0\n");
}

TEST(FoldedEncoderTest, AValueTypeThatIsNotThereIsAnError) {
  const SampleProfile sample = SmallProfile();
  const auto result = FoldedEncoder({.value_type = "alloc"}).Encode(sample.profile, sample.symbols);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("alloc"));
}

}  // namespace
}  // namespace strobe::testing
