// The requests of this backend, byte for byte where it counts, and what answers mean to it.
#include "strobe/http/parca_exporter.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "backends.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using testing::Between;
using testing::Build;
using testing::CheckPprof;
using ::testing::ElementsAre;
using testing::EncodedProfile;
using ::testing::HasSubstr;
using testing::HeaderOf;
using testing::ReadPprof;

TEST(ParcaBackend, EachThreadIsASeries) {
  const EncodedProfile encoded;
  const auto backend = MakeParcaBackend(
      {.url = "http://parca:7070", .labels = "region=eu \"west\"", .token = "the-token"});
  const auto messages = Build(backend, encoded.request());
  EXPECT_EQ((*backend)->endpoint().url, "http://parca:7070/api/profiles/writeraw");
  EXPECT_EQ(HeaderOf((*backend)->endpoint().headers, "Authorization"), "Bearer the-token");
  ASSERT_EQ(messages.size(), 1u);
  const std::string& body = messages[0].body;
  std::string profiles;
  std::vector<std::int64_t> cpu;
  for (std::string_view rest = body; rest.find("\"rawProfile\":\"") != std::string_view::npos;) {
    const std::string encoded_profile = Between(rest, "\"rawProfile\":\"", "\"");
    rest.remove_prefix(rest.find(encoded_profile) + encoded_profile.size());
    std::string bytes;
    ASSERT_TRUE(absl::Base64Unescape(encoded_profile, &bytes));
    const auto profile = ReadPprof(bytes);
    ASSERT_TRUE(profile.has_value());
    EXPECT_EQ(CheckPprof(*profile), "");
    EXPECT_EQ(profile->sample_types.size(), 3u);
    for (const auto& sample : profile->samples) cpu.push_back(sample.values[1]);
    profiles += encoded_profile + "\n";
  }
  EXPECT_THAT(cpu, ElementsAre(30'000'000, 20'000'000));
  const auto series = [&](std::string_view thread, std::string_view profile) {
    return absl::StrCat(
        "{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
        "{\"name\":\"job\",\"value\":\"shop\"},{\"name\":\"region\",\"value\":\"eu \\\"west\\\"\"},"
        "{\"name\":\"thread_name\",\"value\":\"",
        std::string(thread), "\"}]},\"samples\":[{\"rawProfile\":\"", std::string(profile),
        "\"}]}");
  };
  EXPECT_EQ(body, absl::StrCat(
                      "{\"series\":[", series("main", profiles.substr(0, profiles.find('\n'))), ",",
                      series("worker", Between(profiles, "\n", "\n")), "],\"normalized\":false}"));
}

TEST(ParcaBackend, ManyThreadsShareTheLastSeries) {
  Profile profile = testing::ProfileHead();
  testing::ProfileBuilder builder(profile);
  const std::uint32_t frame = builder.AddFrame(0x1234, Frame::kNoModule);
  constexpr std::uint32_t kThreads = 100;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    builder.AddThread(i + 1, absl::StrCat("thread ", i));
    builder.AddSample(i, {frame}, {1, 10});
  }
  const auto messages = Build(MakeParcaBackend({}), testing::RequestOf(profile, {}));
  std::size_t series = 0;
  for (std::size_t at = 0; (at = messages[0].body.find("rawProfile", at)) != std::string::npos;
       ++at)
    ++series;
  EXPECT_EQ(series, kMaxParcaSeries);
  EXPECT_THAT(messages[0].body, HasSubstr(kOtherThreads));
}

TEST(ParcaBackend, TheMachineIsLabelsButItsContainersAreNot) {
  testing::SampleProfile sample = testing::EmptyProfile();
  sample.profile.machine = LabelSet({{"cpus", 4}, {"container_id", "abc"}});
  const auto messages =
      Build(MakeParcaBackend({}), testing::RequestOf(sample.profile, sample.symbols));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].body.find(R"({"name":"cpus","value":"4"}]})"), std::string::npos)
      << messages[0].body;
}

TEST(ParcaBackend, AWebPageIsNoAnswer) {
  const auto backend = MakeParcaBackend({});
  EXPECT_EQ((*backend)->Judge({.status = 200, .content_type = "application/json"}).verdict,
            Verdict::kDelivered);
  const Judgement judgement =
      (*backend)->Judge({.status = 200, .content_type = "text/html; charset=utf-8"});
  EXPECT_EQ(judgement.verdict, Verdict::kStop);
  EXPECT_THAT(std::string(judgement.status.message()), HasSubstr("text/html"));
}

TEST(ParcaBackend, AProfileThatNoEncoderTakesIsRefused) {
  testing::ExpectRefusesWrongProfiles(**MakeParcaBackend({}));
}

}  // namespace
}  // namespace strobe
