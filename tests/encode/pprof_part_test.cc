// What servers get that want one value type, or one thread, in each file.
#include "strobe/encode/pprof_part.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profiles.h"

namespace strobe {
namespace {

using testing::CheckPprof;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing::PprofProfile;
using testing::ReadPprof;

PprofProfile Encoded(const Profile& profile, const Symbols& symbols, PprofOptions options) {
  const auto bytes = PprofEncoder(std::move(options)).Encode(profile, symbols);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const auto read = ReadPprof(bytes.value_or(""));
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(CheckPprof(read.value_or(PprofProfile())), "");
  return read.value_or(PprofProfile());
}

// Each sample as text: its stack and its values.
std::vector<std::string> Samples(const PprofProfile& profile) {
  std::vector<std::string> samples;
  for (const PprofProfile::Sample& sample : profile.samples) {
    std::string text;
    for (const std::string& name : profile.Stack(sample)) text += name + ";";
    for (const std::int64_t value : sample.values) text += " " + std::to_string(value);
    samples.push_back(text);
  }
  return samples;
}

TEST(PprofPart, WithAllItIsTheWholeProfile) {
  const testing::SampleProfile small = testing::SmallProfile();
  PprofPart all;
  for (std::size_t i = 0; i < small.profile.value_types.size(); ++i) all.columns.push_back(i);
  const PprofProfile whole = Encoded(small.profile, small.symbols, {});
  const PprofProfile part = Encoded(small.profile, small.symbols, {.part = all});
  // A sample whose values are all 0 says nothing.
  std::vector<std::string> samples = Samples(whole);
  std::erase_if(samples, [](const std::string& text) { return text.ends_with(" 0 0 0"); });
  EXPECT_EQ(Samples(part), samples);
  EXPECT_EQ(part.sample_types, whole.sample_types);
  EXPECT_EQ(part.default_sample_type, whole.default_sample_type);
  EXPECT_EQ(part.comments, whole.comments);
  EXPECT_EQ(part.time_ns, whole.time_ns);
  EXPECT_EQ(part.duration_ns, whole.duration_ns);
  EXPECT_EQ(part.period, whole.period);
  EXPECT_EQ(part.period_type, whole.period_type);
}

class PprofPartTest : public ::testing::Test {
 protected:
  PprofPartTest() { testing::AddTwoThreads(profile_); }
  [[nodiscard]] PprofProfile Part(PprofPart part) const {
    return Encoded(profile_, {}, {.part = std::move(part)});
  }

  Profile profile_;
};

TEST_F(PprofPartTest, HasItsColumnsByTheirNewNames) {
  const PprofProfile wall = Part({.columns = {2}, .names = {"wall-time"}});
  ASSERT_EQ(wall.sample_types.size(), 1u);
  EXPECT_EQ(wall.sample_types[0].type, "wall-time");
  EXPECT_EQ(wall.sample_types[0].unit, "nanoseconds");
  EXPECT_EQ(wall.default_sample_type, "wall-time");
  ASSERT_EQ(wall.samples.size(), 1u) << "the other has no wall time";
  EXPECT_THAT(wall.samples[0].values, ElementsAre(50'000'000));
  const PprofProfile cpu = Part({.columns = {1, 0}});
  EXPECT_EQ(cpu.default_sample_type, "cpu");
  EXPECT_THAT(cpu.samples[0].values, ElementsAre(30'000'000, 3));
}

TEST_F(PprofPartTest, HasItsThreadsAndOnlyWhatTheirSamplesNeed) {
  const PprofProfile main = Part({.columns = {0, 1}, .threads = {{"main"}}});
  ASSERT_EQ(main.samples.size(), 1u);
  EXPECT_THAT(main.samples[0].values, ElementsAre(3, 30'000'000));
  EXPECT_EQ(main.locations.size(), 1u);
  EXPECT_THAT(main.strings, Not(Contains("worker")));
  const PprofProfile worker = Part({.columns = {0}, .threads = {{"worker"}}});
  EXPECT_EQ(worker.locations.size(), 2u);
  for (std::size_t i = 0; i < worker.locations.size(); ++i)
    EXPECT_EQ(worker.locations[i].id, i + 1) << "Parca refuses other ids";
}

TEST_F(PprofPartTest, SaysWhetherItHasSamples) {
  const auto has = [this](const PprofPart& part) { return part.HasSamplesOf(profile_); };
  EXPECT_TRUE(has({.columns = {0}, .threads = {{"main"}}}));
  EXPECT_FALSE(has({.columns = {2}, .threads = {{"main"}}}));
  EXPECT_FALSE(has({.columns = {0}, .threads = {{"other"}}}));
  EXPECT_FALSE(has({.columns = {}}));
}

TEST_F(PprofPartTest, AColumnThatTheProfileLacksIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      PprofEncoder({.part = PprofPart{.columns = {3}}}).Encode(profile_, {}).status()));
}

}  // namespace
}  // namespace strobe
