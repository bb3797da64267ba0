#include "strobe/encode/pprof_encoder.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profile_check.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Pprof, EncoderConformance, PprofEncoder);

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// What Encode wrote, read back; the test fails where it cannot be read or is not valid.
PprofProfile PprofOf(const SampleProfile& sample, const PprofOptions& options = {}) {
  const absl::StatusOr<std::string> bytes =
      PprofEncoder(options).Encode(sample.profile, sample.symbols);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  if (!bytes.ok()) return {};
  const std::optional<PprofProfile> read = ReadPprof(*bytes);
  EXPECT_TRUE(read.has_value()) << sample.name;
  EXPECT_EQ(CheckPprof(read.value_or(PprofProfile())), "") << sample.name;
  return read.value_or(PprofProfile());
}

// The number and the text of a sample's labels, which must have distinct keys.
std::map<std::string, std::pair<std::int64_t, std::string>> Labels(
    const PprofProfile::Sample& sample) {
  std::map<std::string, std::pair<std::int64_t, std::string>> labels;
  for (const auto& label : sample.labels) {
    EXPECT_TRUE(labels.emplace(label.key, std::pair(label.number, label.text)).second) << label.key;
  }
  return labels;
}

TEST(PprofEncoderTest, EveryRowComesBackWithItsStackValuesAndThread) {
  for (const SampleProfile& sample : SampleProfiles()) {
    const Profile& profile = sample.profile;
    const PprofProfile read = PprofOf(sample, {.moments = false});
    ASSERT_EQ(read.samples.size(), profile.samples.size()) << sample.name;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      std::vector<std::uint64_t> frames;
      for (std::uint32_t node = profile.samples[i].stack; node != 0;
           node = profile.stacks[node].parent) {
        frames.push_back(profile.stacks[node].frame + 1);
      }
      EXPECT_EQ(read.samples[i].locations, frames) << sample.name << " " << i;
      EXPECT_THAT(read.samples[i].values, ::testing::ElementsAreArray(profile.Values(i)))
          << sample.name << " " << i;
      auto labels = Labels(read.samples[i]);
      EXPECT_EQ(labels["thread_id"].second, std::to_string(profile.Labels(i).Number("thread id")));
      EXPECT_EQ(labels["thread_name"].second, profile.Labels(i).Text("thread name"));
    }
    for (std::size_t i = 0; i < profile.frames.size(); ++i) {
      const Frame& frame = profile.frames[i];
      EXPECT_EQ(read.locations[i].id, i + 1);
      EXPECT_EQ(read.locations[i].address, frame.is_pseudo() ? 0 : frame.address);
      EXPECT_EQ(read.locations[i].mapping,
                frame.module < profile.modules.size() ? frame.module + 1 : 0);
    }
  }
}

TEST(PprofEncoderTest, HeadSaysWhatWasMeasuredAndWhen) {
  const PprofProfile read = PprofOf(SmallProfile());
  EXPECT_THAT(read.sample_types, ElementsAre(PprofProfile::ValueType{"samples", "count"},
                                             PprofProfile::ValueType{"cpu", "nanoseconds"},
                                             PprofProfile::ValueType{"wall", "nanoseconds"}));
  EXPECT_EQ(read.default_sample_type, "cpu");
  EXPECT_EQ(read.period_type, (PprofProfile::ValueType{"cpu", "nanoseconds"}));
  EXPECT_EQ(read.period, 10'000'000);
  EXPECT_EQ(read.time_ns, 1'700'000'000'123'456'789);
  EXPECT_EQ(read.duration_ns, 60'000'000'000);
}

TEST(PprofEncoderTest, NamesOfCodeAndOfPseudoFrames) {
  const PprofProfile read = PprofOf(SmallProfile());
  EXPECT_THAT(read.Stack(read.samples[1]), ElementsAre("sample_write", "sample::Busy", "main"));
  EXPECT_THAT(read.Stack(read.samples[3]), ElementsAre("[libsample.so.6]", "main"));
  EXPECT_EQ(read.locations[3].address, 0x7F0000054321U);
  EXPECT_THAT(read.Stack(read.samples[4]), ElementsAre("", "main"))
      << "code without a name keeps its address alone";
  EXPECT_THAT(read.Stack(read.samples[6]), IsEmpty());
  EXPECT_THAT(read.Stack(read.samples[7]), ElementsAre("sample::Busy", "[truncated]"));
  for (const char* name : {"[broken stack]", "[no unwind info]", "[lost]", "[residual]",
                           "[overflow]", "[coroutine]"}) {
    EXPECT_THAT(read.strings, Contains(name));
  }
  EXPECT_EQ(read.functions[1].system_name, "sample::Busy(int, std::vector<int> const&)");
  EXPECT_EQ(read.samples[11].values[1], 3'000'000);
}

TEST(PprofEncoderTest, OverloadsDifferInTheirSystemNames) {
  SampleProfile sample = SmallProfile();
  sample.symbols.functions[2].name = "sample::Busy(char)";
  const PprofProfile read = PprofOf(sample);
  EXPECT_EQ(read.functions[1].name, read.functions[2].name);
  EXPECT_EQ(read.functions[2].system_name, "sample::Busy(char)");
}

TEST(PprofEncoderTest, FullNamesOnRequest) {
  const PprofProfile read = PprofOf(SmallProfile(), {.full_names = true});
  EXPECT_EQ(read.functions[1].name, "sample::Busy(int, std::vector<int> const&)");
  EXPECT_EQ(read.functions[1].system_name, "_ZN6sample4BusyEiRKSt6vectorIiSaIiEE");
}

TEST(PprofEncoderTest, LinesAndInlinedFunctionsInnermostFirst) {
  const PprofProfile read = PprofOf(DetailedProfile());
  EXPECT_THAT(read.Stack(read.samples[0]),
              ElementsAre("sample::Step", "sample::Loop", "sample::Busy", "main"));
  const std::vector<PprofProfile::Line>& lines = read.locations[1].lines;
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].line, 6);
  EXPECT_EQ(lines[0].column, 9);
  EXPECT_EQ(lines[1].line, 8);
  EXPECT_EQ(lines[2].line, 25);
  EXPECT_EQ(lines[2].column, 3);
  const PprofProfile::Function& busy = read.functions.at(lines[2].function - 1);
  EXPECT_EQ(busy.filename, "/src/sample/busy.cc");
  EXPECT_EQ(busy.start_line, 20);
  EXPECT_EQ(read.functions.at(lines[1].function - 1).filename, "/src/sample/w\xC3\xB6rk.h");
}

TEST(PprofEncoderTest, MappingsClaimWhatWasLookedUpForEachLocation) {
  const PprofProfile read = PprofOf(SmallProfile());
  ASSERT_EQ(read.mappings.size(), 2U);
  EXPECT_EQ(read.mappings[0].filename, "/opt/sample/bin/sample_program");
  EXPECT_EQ(read.mappings[0].start, 0x400000U);
  EXPECT_EQ(read.mappings[0].limit, 0x500000U);
  EXPECT_EQ(read.mappings[0].file_offset, 0x1000U);
  EXPECT_EQ(read.mappings[0].build_id, "00112233445566778899aabbccddeeff00112233");
  EXPECT_TRUE(read.mappings[0].has_functions);
  EXPECT_TRUE(read.mappings[1].has_functions) << "pprof must not look again for what is not there";
  EXPECT_FALSE(read.mappings[0].has_filenames);
  const PprofProfile detailed = PprofOf(DetailedProfile());
  EXPECT_TRUE(detailed.mappings[0].has_filenames);
  EXPECT_TRUE(detailed.mappings[0].has_line_numbers);
  EXPECT_TRUE(detailed.mappings[0].has_inline_frames);
  EXPECT_TRUE(detailed.mappings[1].has_functions);
  EXPECT_FALSE(detailed.mappings[1].has_filenames || detailed.mappings[1].has_line_numbers ||
               detailed.mappings[1].has_inline_frames);
  const PprofProfile bare = PprofOf(UnsymbolizedProfile());
  EXPECT_FALSE(bare.mappings[0].has_functions);
  EXPECT_FALSE(bare.mappings[1].has_functions);
  EXPECT_THAT(bare.strings, Contains("[truncated]")) << "pseudo-frames need no symbolizer";
}

TEST(PprofEncoderTest, OnlyTheProgramIsAMappingWithoutLocations) {
  SampleProfile sample = SmallProfile();
  Profile& profile = sample.profile;
  profile.modules.insert(profile.modules.begin() + 1,
                         {0x7E0000000000, 0x7E0000001000, 0, 0, "/usr/lib/libidle.so", ""});
  for (Frame& frame : profile.frames) {
    if (frame.module == 0) frame.module = Frame::kNoModule;
    if (frame.module == 1) frame.module = 2;
  }
  const PprofProfile read = PprofOf(sample);
  ASSERT_EQ(read.mappings.size(), 2U);
  EXPECT_EQ(read.mappings[0].filename, "/opt/sample/bin/sample_program");
  EXPECT_FALSE(read.mappings[0].has_functions) << "it claims nothing";
  EXPECT_EQ(read.mappings[1].filename, "/usr/lib/libsample.so.6");
  EXPECT_EQ(read.locations[2].mapping, 2U);
}

TEST(PprofEncoderTest, LabelsOfThePrograms) {
  SampleProfile sample = SmallProfile();
  sample.profile.label_sets[0] = LabelSet({{"request", std::string("checkout")},
                                           {"batch size", std::int64_t{-7}},
                                           {"thread_id", std::string("mine")}})
                                     .Joined(sample.profile.label_sets[0]);
  auto common = Labels(PprofOf(sample).samples[0]);
  EXPECT_EQ(common["request"].second, "checkout");
  EXPECT_EQ(common["batch_size"].first, -7);
  EXPECT_EQ(common["thread_id"].second, "4242") << "a key has one value";
  auto datadog = Labels(PprofOf(sample, {.labels = PprofLabels::kDatadog}).samples[0]);
  EXPECT_EQ(datadog["thread id"].first, 4242);
  EXPECT_EQ(datadog["thread name"].second, "main");
  EXPECT_EQ(datadog["batch size"].first, -7);
  EXPECT_EQ(datadog["thread_id"].second, "mine");
}

TEST(PprofEncoderTest, MomentsAreSamplesOfTheirOwnOnRequest) {
  const SampleProfile sample = DetailedProfile();
  const PprofProfile sums = PprofOf(sample);
  const PprofProfile read = PprofOf(sample, {.moments = true});
  ASSERT_EQ(read.samples.size(), sample.profile.moments.size() + sample.profile.samples.size());
  for (std::size_t i = 0; i < sample.profile.moments.size(); ++i) {
    EXPECT_EQ(Labels(read.samples[i])["end_timestamp_ns"].first, sample.profile.moments[i].time_ns);
    EXPECT_THAT(read.samples[i].values, ElementsAre(1, 10'000'000, 0));
  }
  EXPECT_FALSE(Labels(read.samples.back()).contains("end_timestamp_ns"));
  for (std::size_t column = 0; column < 3; ++column) {
    const auto sum = [column](const PprofProfile& profile) {
      std::int64_t total = 0;
      for (const PprofProfile::Sample& one : profile.samples) total += one.values[column];
      return total;
    };
    EXPECT_EQ(sum(read), sum(sums));
  }
}

TEST(PprofEncoderTest, AddressOutsideItsModuleIsNotWrittenIntoTheMapping) {
  SampleProfile sample = SmallProfile();
  sample.profile.frames[1].address = sample.profile.modules[0].limit;
  const PprofProfile read = PprofOf(sample);
  EXPECT_EQ(read.locations[1].mapping, 0U);
  EXPECT_EQ(read.locations[1].address, sample.profile.modules[0].limit);
}

TEST(PprofEncoderTest, CommentsCarryTheProfilersAccount) {
  SampleProfile sample = SmallProfile();
  for (const std::size_t sampled : {0, 2}) sample.profile.threads[sampled].samples = 5;
  const PprofProfile read = PprofOf(sample);
  EXPECT_THAT(
      read.comments,
      ElementsAre(
          StartsWith(
              "strobe: program sample_program, process 4242, period 7, threads: 2 sampled, "),
          "rate: 100.00 Hz requested, 99.50 Hz measured; samples: 105; drops: 3 (ring full 3); "
          "stack ends: 105 (complete 101, truncated 1, broken 1, no unwind info 1, coroutine 1)",
          "cost: handler 1.235 ms (estimated), collector 2.500 ms of CPU time in 0 drains: 0.037 % "
          "of "
          "the process's 10.000 s, memory "
          "1536.0 KiB"));
  sample.profile.stats.exports_failed = 2;
  sample.profile.stats.threads_unlisted = 9;
  EXPECT_THAT(PprofOf(sample).comments,
              Contains(EndsWith("; threads beyond the memory limit: 9; exports failed: 2")));
  sample.profile.stats.exports_dropped = 1;
  sample.profile.stats.amount_dropped = 400;
  EXPECT_THAT(PprofOf(sample).comments,
              Contains(EndsWith("; profiles never delivered: 1; amount in no profile: 400")));
}

TEST(PprofEncoderTest, StringsThatAreNotUtf8AreMended) {
  SampleProfile sample = SmallProfile();
  sample.profile.modules[0].path = "/opt/\xFF\xFE";
  sample.profile.program = "caf\xE9";
  sample.symbols.functions[0].name = "f\x80g";
  const PprofProfile read = PprofOf(sample);
  EXPECT_EQ(read.mappings[0].filename, "/opt/??");
  EXPECT_EQ(read.functions[0].name, "f?g");
  EXPECT_THAT(read.strings, Contains("w\xC3\xB6rker 1")) << "valid text stays";
  EXPECT_THAT(read.comments, Contains(HasSubstr("program caf?,")));
}

TEST(PprofEncoderTest, EachStringStandsInTheTableOnce) {
  const PprofProfile read = PprofOf(RandomProfile(50, 10, 5, 100));
  const std::set<std::string> distinct(read.strings.begin(), read.strings.end());
  EXPECT_EQ(distinct.size(), read.strings.size());
}

TEST(PprofEncoderTest, StackDeeperThanAnyOption) {
  const SampleProfile sample = RandomProfile(3, 5000, 4990, 20'000);
  const PprofProfile read = PprofOf(sample);
  EXPECT_EQ(read.samples[2].locations.size(), 5000U);
}

TEST(PprofEncoderTest, UncompressedIsWhatTheGzipHolds) {
  const SampleProfile sample = RandomProfile(2000, 30, 0, 3000);
  const std::string packed = *PprofEncoder().Encode(sample.profile, sample.symbols);
  const std::string plain = *PprofEncoder().EncodeUncompressed(sample.profile, sample.symbols);
  EXPECT_EQ(Gunzip(packed), plain);
  EXPECT_LT(packed.size(), plain.size());
  // No time, no name, and no operating system in the header.
  EXPECT_EQ(packed.substr(0, 10), std::string("\x1F\x8B\x08\x00\x00\x00\x00\x00\x04\xFF", 10));
}

TEST(PprofEncoderTest, IndicesOutOfRangeAreAnErrorThatSaysWhich) {
  const auto error = [](auto change) {
    SampleProfile sample = SmallProfile();
    change(sample);
    const auto result = PprofEncoder().Encode(sample.profile, sample.symbols);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.samples[1].stack = 1000; }),
              HasSubstr("sample 1"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.samples[2].labels = 3; }),
              HasSubstr("sample 2"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.stacks[2].frame = 99; }),
              HasSubstr("stack 2"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.stacks[2].parent = 2; }),
              HasSubstr("stack 2"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.frames[0].module = 2; }),
              HasSubstr("frame 0"));
  EXPECT_THAT(error([](SampleProfile& s) { s.symbols.frames[0].function = 4; }),
              HasSubstr("frame 0"));
  EXPECT_THAT(error([](SampleProfile& s) { s.symbols.frames.pop_back(); }), HasSubstr("symbols"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.values.pop_back(); }), HasSubstr("values"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.default_value_type = 3; }),
              HasSubstr("default value type"));
}

}  // namespace
}  // namespace strobe::testing
