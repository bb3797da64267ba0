// The requests of this backend, byte for byte where it counts, and what answers mean to it.
#include "strobe/http/pyroscope_exporter.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using testing::Build;
using ::testing::ElementsAre;
using testing::EncodedProfile;
using ::testing::HasSubstr;
using testing::HeaderOf;
using testing::ReadPprof;
using testing::Types;

TEST(PyroscopeBackend, EachKindOfValueIsARequest) {
  const EncodedProfile encoded;
  const auto backend = MakePyroscopeBackend({.url = "https://pyroscope/base",
                                             .application = "my shop",
                                             .labels = "region=eu west,1-b=\"x\"",
                                             .user = "1234",
                                             .password = "pass",
                                             .tenant = "team"});
  const auto messages = Build(backend, encoded.request());
  const HttpEndpoint& endpoint = (*backend)->endpoint();
  EXPECT_EQ(endpoint.url, "https://pyroscope/base/ingest");
  EXPECT_EQ(HeaderOf(endpoint.headers, "Authorization"), "Basic MTIzNDpwYXNz");
  EXPECT_EQ(HeaderOf(endpoint.headers, "X-Scope-OrgID"), "team");
  ASSERT_EQ(messages.size(), 2u);
  for (const HttpMessage& message : messages) {
    EXPECT_EQ(message.query,
              "name=my_shop%7Bregion%3Deu_west%2C_1_b%3D_x_%7D&from=1700000000&until=1700000011"
              "&format=pprof&spyName=strobe&sampleRate=100");
  }
  EXPECT_THAT(Types(*ReadPprof(messages[0].body)), ElementsAre("samples/count", "cpu/nanoseconds"));
  EXPECT_THAT(Types(*ReadPprof(messages[1].body)), ElementsAre("wall/nanoseconds"));
}

TEST(PyroscopeBackend, TheHeapIsARequestOfItsOwn) {
  testing::SampleProfile sample = testing::SmallProfile();
  Profile& profile = sample.profile;
  const std::size_t before = profile.value_types.size();
  for (const char* const type : {"alloc_space", "peak_space", "inuse_space"})
    profile.value_types.push_back({type, "bytes"});
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < profile.values.size(); ++i) {
    values.push_back(profile.values[i]);
    if (i % before == before - 1) values.insert(values.end(), {1, 2, 3});
  }
  profile.values = std::move(values);
  profile.moments.clear();
  profile.moment_values.clear();
  const auto messages =
      Build(MakePyroscopeBackend({}), testing::RequestOf(profile, sample.symbols));
  std::vector<std::vector<std::string>> types;
  for (const HttpMessage& message : messages) types.push_back(Types(*ReadPprof(message.body)));
  EXPECT_THAT(types, ::testing::UnorderedElementsAre(
                         ElementsAre("samples/count", "cpu/nanoseconds"),
                         ElementsAre("alloc_space/bytes", "peak_space/bytes", "inuse_space/bytes"),
                         ElementsAre("wall/nanoseconds")));
}

TEST(PyroscopeBackend, APeriodWithoutSamplesIsOneRequest) {
  const testing::SampleProfile empty = testing::EmptyProfile();
  const auto messages =
      Build(MakePyroscopeBackend({}), testing::RequestOf(empty.profile, empty.symbols));
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0].query, HasSubstr("name=sample_program%7B%7D&"));
}

TEST(PyroscopeBackend, TheMachineIsLabelsButItsContainersAreNot) {
  testing::SampleProfile sample = testing::EmptyProfile();
  sample.profile.machine = LabelSet({{"cpus", 4}, {"container_id", "abc"}, {"os", "Own"}});
  const auto messages = Build(MakePyroscopeBackend({.labels = "region=eu"}),
                              testing::RequestOf(sample.profile, sample.symbols));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0].query, HasSubstr("%7Bregion%3Deu%2Ccpus%3D4%2Cos%3DOwn%7D&"));
}

TEST(PyroscopeBackend, APartOfTheServerThatDoesNotAnswerIsNoRefusal) {
  const auto backend = MakePyroscopeBackend({});
  const auto verdict = [&](int status, std::string body) {
    return (*backend)->Judge({.status = status, .body = std::move(body)}).verdict;
  };
  EXPECT_EQ(verdict(422, "rpc error: code = Unavailable desc = service is unavailable"),
            Verdict::kRetry);
  EXPECT_EQ(verdict(422, "profile is too old"), Verdict::kRefused);
  EXPECT_EQ(verdict(200, ""), Verdict::kDelivered);
}

TEST(PyroscopeBackend, AProfileThatNoEncoderTakesIsRefused) {
  testing::ExpectRefusesWrongProfiles(**MakePyroscopeBackend({}));
}

}  // namespace
}  // namespace strobe
