#include "strobe/encode/firefox_encoder.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/zone.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Firefox, EncoderConformance, FirefoxEncoder);

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// tests/readers opens the sample profiles in the Firefox Profiler itself.
std::string FirefoxText(const SampleProfile& sample, const FirefoxOptions& options = {}) {
  const absl::StatusOr<std::string> text =
      FirefoxEncoder(options).EncodeUncompressed(sample.profile, sample.symbols);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// The element of "threads" with `name`, up to its end.
std::string ThreadOf(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("\"name\":\"" + name + "\",\"isMainThread\"");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find(R"({"processType")", begin) - begin);
}

TEST(FirefoxEncoderTest, UncompressedIsWhatTheGzipHolds) {
  const SampleProfile sample = DetailedProfile();
  EXPECT_EQ(Gunzip(*FirefoxEncoder().Encode(sample.profile, sample.symbols)), FirefoxText(sample));
}

TEST(FirefoxEncoderTest, MomentsAreSamplesWithTheirTimesAndTheRestStandsAtTheEnd) {
  const std::string worker = ThreadOf(FirefoxText(DetailedProfile()), "w\xC3\xB6rker 1");
  EXPECT_THAT(worker, HasSubstr(R"("time":[0,11,21,41,51,60000,60000,60000])"));
  EXPECT_THAT(worker, HasSubstr(R"("stack":[null,null,3,null,3,3,5,32])"))
      << "idle before and between the moments";
  EXPECT_THAT(worker, HasSubstr(R"("weight":[0,0,10,0,10,30,10,10],"weightType":"tracing-ms")"));
  EXPECT_THAT(worker, HasSubstr(R"("threadCPUDelta":[0,0,10000000,0,10000000,30000000,)"));
}

TEST(FirefoxEncoderTest, WithoutMomentsRowsFillTheThreadsLife) {
  SampleProfile sample = SmallProfile();
  sample.profile.threads[1].begin_ns = sample.profile.time_ns + 10'000'000'000;
  const std::string text = FirefoxText(sample);
  const std::string worker = ThreadOf(text, "w\xC3\xB6rker 1");
  // 50, 10 and 10 of 70 ms.
  EXPECT_THAT(worker, HasSubstr(R"("time":[10000,45714.285714,52857.142857,60000])"));
  EXPECT_THAT(worker, HasSubstr(R"("weight":[0,50,10,10])"));
  EXPECT_THAT(text, HasSubstr(R"("registerTime":10000,"unregisterTime":null)"));
}

TEST(FirefoxEncoderTest, LivesAndLabelsAreMarkers) {
  const std::string text = FirefoxText(DetailedProfile());
  const std::string main = ThreadOf(text, "main");
  EXPECT_THAT(main, HasSubstr(R"({"type":"Thread","cpu":900000000,"samples":90})"));
  EXPECT_THAT(main, HasSubstr(R"({"type":"Label","value":"check;out"})"));
  // The thread, and each of two labels twice: for the samples at 11 and at 41 ms.
  EXPECT_THAT(main, HasSubstr(R"("startTime":[0,1,1,31,31],"endTime":[60000,11,11,41,41])"));
  EXPECT_THAT(text, HasSubstr(R"("batch size","request"])")) << "their names";
  EXPECT_THAT(ThreadOf(text, "thread 4294967295"),
              HasSubstr(R"("startTime":[2],"endTime":[5],"phase":[1])"));
}

TEST(FirefoxEncoderTest, ZonesAreMarkersWithTheirNames) {
  SampleProfile sample = EmptyProfile();
  Profile& profile = sample.profile;
  ProfileBuilder builder(profile);
  builder.AddThread(7, "main");
  const std::uint32_t work = builder.AddFrame(0x1000, Frame::kNoModule);
  const auto add = [&](std::int64_t time_ms, std::string path) {
    const auto row = static_cast<std::uint32_t>(profile.samples.size());
    builder.AddSample(0, {work}, {1, 1'000'000});
    profile.samples[row].labels = static_cast<std::uint32_t>(profile.label_sets.size());
    profile.label_sets.push_back(
        profile.label_sets[0].Joined(LabelSet({{std::string(kZoneLabel), std::move(path)}})));
    profile.moments.push_back({row, profile.time_ns + time_ms * 1'000'000});
    profile.moment_values.insert(profile.moment_values.end(), {1, 1'000'000});
  };
  add(10, "request");
  add(11, "request;parse");
  add(12, "request;reply");
  const std::string text = FirefoxText(sample);
  // The thread; parse, which ends first; then request and reply.
  EXPECT_THAT(text, HasSubstr(R"({"type":"Zone","value":"request;parse"},)"
                              R"({"type":"Zone","value":"request"},)"
                              R"({"type":"Zone","value":"request;reply"})"));
  EXPECT_THAT(text, HasSubstr(R"("startTime":[0,10,9,11],"endTime":[60000,11,12,12])"));
}

TEST(FirefoxEncoderTest, AThreadWithoutASampleHasItsLife) {
  SampleProfile sample = DetailedProfile();
  const std::int64_t begin_ns = sample.profile.time_ns;
  sample.profile.threads.push_back({.id = 99,
                                    .name = "short",
                                    .begin_ns = begin_ns + 7'000'000,
                                    .end_ns = begin_ns + 8'500'000,
                                    .cpu_ns = 1'000'000});
  const std::string text = ThreadOf(FirefoxText(sample), "short");
  EXPECT_THAT(text, HasSubstr(R"({"type":"Thread","cpu":1000000,"samples":0})"));
  EXPECT_THAT(text, HasSubstr(R"("startTime":[7],"endTime":[8.5],"phase":[1])"));
}

TEST(FirefoxEncoderTest, AThreadGoesOnWhileOneOfItsLivesDoes) {
  SampleProfile sample = DetailedProfile();
  ProfileThread ended = sample.profile.threads[0];
  ended.end_ns = sample.profile.time_ns + 1'000'000;
  sample.profile.threads.push_back(ended);
  const std::string text = FirefoxText(sample);
  const std::string times = text.substr(0, text.find("\"name\":\"main\",\"isMainThread\""));
  EXPECT_THAT(times.substr(times.rfind("\"registerTime\"")), HasSubstr("\"unregisterTime\":null"));
}

TEST(FirefoxEncoderTest, LinesInlinedFunctionsLibrariesAndCategories) {
  const std::string text = FirefoxText(DetailedProfile());
  EXPECT_THAT(text, HasSubstr(R"("inlineDepth":[0,0,1,2,0,0,)"));
  EXPECT_THAT(text, HasSubstr(R"("line":[12,25,8,6,null,)"));
  EXPECT_THAT(text, HasSubstr(R"("category":[1,1,1,1,2,2,0,)"));
  EXPECT_THAT(text, HasSubstr(R"("nativeSymbol":[0,1,1,1,2,3,null,)"));
  EXPECT_THAT(text, HasSubstr(R"("breakpadId":"33221100554477668899AABBCCDDEEFF0",)"
                              R"("codeId":"00112233445566778899aabbccddeeff00112233")"));
  EXPECT_THAT(text, HasSubstr(R"("address":[8755,13125,13125,13125,230212,500513,-1,)"))
      << "in the library";
}

TEST(FirefoxEncoderTest, AnotherValueTypeOnRequest) {
  const std::string counts = FirefoxText(SmallProfile(), {.value_type = "samples"});
  EXPECT_THAT(counts, HasSubstr(R"("weightType":"samples")"));
  EXPECT_THAT(FirefoxText(SmallProfile(), {.value_type = "wall"}),
              HasSubstr(R"("weight":[0,300],"weightType":"tracing-ms")"));
  const SampleProfile sample = SmallProfile();
  EXPECT_EQ(FirefoxEncoder({.value_type = "alloc"})
                .Encode(sample.profile, sample.symbols)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FirefoxEncoderTest, TheSumsAndTheAccountAreInformation) {
  const std::string text = FirefoxText(SmallProfile());
  EXPECT_THAT(text, HasSubstr(R"("label":"Sum of cpu","format":"string",)"
                              R"("value":"1053000000 nanoseconds")"));
  EXPECT_THAT(text, HasSubstr("99.50 Hz measured"));
  EXPECT_THAT(text, HasSubstr(R"("symbolicated":true)"));
  EXPECT_THAT(FirefoxText(UnsymbolizedProfile()), HasSubstr(R"("symbolicated":false)"));
}

TEST(FirefoxEncoderTest, HostileTimesDoNoHarm) {
  SampleProfile sample = DetailedProfile();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  sample.profile.moments[0].time_ns = kLeast;
  sample.profile.threads[0].begin_ns = kLeast;
  sample.profile.threads[1].end_ns = kLeast;
  sample.profile.duration_ns = kLeast;
  sample.profile.values[0] = kLeast;
  EXPECT_THAT(FirefoxText(sample), Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace strobe::testing
