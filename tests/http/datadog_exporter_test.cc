// The requests of this backend, byte for byte where it counts, and what answers mean to it.
#include "strobe/http/datadog_exporter.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "backends.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profiles.h"

namespace strobe {
namespace {

using testing::Between;
using testing::Build;
using testing::CheckPprof;
using ::testing::ElementsAre;
using testing::EncodedProfile;
using ::testing::HasSubstr;
using testing::HeaderOf;
using testing::ManualHttpTools;
using testing::ReadPprof;
using testing::Types;

DatadogProcess Process() {
  return {.container_id = "0123456789abcdef", .host = "host1", .seed = {1, 2}};
}

struct DatadogTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, DatadogExporter>>;
};

TEST(DatadogExporter, AConfigurationThatCannotWorkIsRefusedAtTheStart) {
  BasicProfiler<DatadogTraits> profiler({}, {.exporter = DatadogExporter({.agentless = true})});
  if (!NativePlatform::Available().ok()) GTEST_SKIP() << NativePlatform::Available();
  const absl::Status status = profiler.Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("DD_API_KEY"));
}

// The profile in a request's body.
std::optional<testing::PprofProfile> ProfileIn(std::string_view body) {
  constexpr std::string_view kHead = "filename=\"profile.pprof\"\r\n\r\n";
  const std::size_t begin = body.find(kHead) + kHead.size();
  return ReadPprof(body.substr(begin, body.rfind("\r\n--strobe-boundary") - begin));
}

TEST(DatadogBackend, SendsDatadogsKeysAndTimes) {
  const testing::SampleProfile sample = testing::DetailedProfile();
  const auto messages = Build(MakeDatadogBackend({.agent_url = "http://a"}, Process()),
                              testing::RequestOf(sample.profile, sample.symbols));
  const auto read = ProfileIn(messages[0].body);
  ASSERT_TRUE(read.has_value());
  std::size_t threads = 0;
  std::size_t times = 0;
  for (const auto& one : read->samples) {
    for (const auto& label : one.labels) {
      threads += label.key == "thread id" && label.number != 0 ? 1 : 0;
      times += label.key == "end_timestamp_ns" ? 1 : 0;
      EXPECT_NE(label.key, "thread_id");
    }
  }
  EXPECT_EQ(threads, read->samples.size());
  EXPECT_EQ(times, sample.profile.moments.size());
}

// Whether the text is a UUID of version 4 (RFC 9562).
bool IsRandomUuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-4xxx-Vxxx-xxxxxxxxxxxx";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
           const std::string_view allowed = form == 'x' ? "0123456789abcdef" : "89ab";
           return form == 'x' || form == 'V' ? allowed.find(c) != allowed.npos : c == form;
         });
}

TEST(DatadogBackend, TheRequestIsThatOfTheIntake) {
  const EncodedProfile encoded(5);
  const auto backend = MakeDatadogBackend({.service = "shop",
                                           .environment = "prod",
                                           .version = "1,2",
                                           .tags = "team:a region:b",
                                           .agent_url = "http://agent:8126"},
                                          Process());
  const auto messages = Build(backend, encoded.request());
  ASSERT_EQ(messages.size(), 1u);
  const HttpEndpoint& endpoint = (*backend)->endpoint();
  EXPECT_EQ(endpoint.url, "http://agent:8126/profiling/v1/input");
  EXPECT_EQ(HeaderOf(endpoint.headers, "DD-EVP-ORIGIN"), "strobe");
  EXPECT_EQ(HeaderOf(endpoint.headers, "DD-EVP-ORIGIN-VERSION"), "0.1.0");
  EXPECT_EQ(HeaderOf(endpoint.headers, "Connection"), "close");
  EXPECT_EQ(HeaderOf(endpoint.headers, "Datadog-Container-Id"), "0123456789abcdef");
  EXPECT_EQ(HeaderOf(endpoint.headers, "DD-API-KEY"), "");
  EXPECT_EQ(HeaderOf(messages[0].headers, "Content-Type"),
            "multipart/form-data; boundary=strobe-boundary");
  const std::string& body = messages[0].body;
  const std::string runtime_id = Between(body, "runtime-id:", ",");
  EXPECT_TRUE(IsRandomUuid(runtime_id)) << runtime_id;
  const std::string head = absl::StrCat(
      "--strobe-boundary\r\n"
      "Content-Disposition: form-data; name=\"event\"; filename=\"event.json\"\r\n"
      "Content-Type: application/json\r\n\r\n"
      "{\"attachments\":[\"profile.pprof\"],\"tags_profiler\":\"language:native,service:shop,"
      "env:prod,version:1_2,host:host1,runtime-id:",
      runtime_id,
      ",profiler_version:0.1.0,profile_seq:5,process_id:4711,team:a,region:b\","
      "\"start\":\"2023-11-14T22:14:10.123456789Z\",\"end\":\"2023-11-14T22:14:20.123456789Z\","
      "\"family\":\"native\",\"version\":\"4\",\"endpoint_counts\":null,\"internal\":{},"
      "\"info\":{\"profiler\":{\"name\":\"strobe\",\"version\":\"0.1.0\"}}}\r\n"
      "--strobe-boundary\r\n"
      "Content-Disposition: form-data; name=\"profile.pprof\"; filename=\"profile.pprof\"\r\n\r\n");
  EXPECT_EQ(body.substr(0, head.size()), head);
  ASSERT_TRUE(body.ends_with("\r\n--strobe-boundary--\r\n"));
  const auto profile = ProfileIn(body);
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(CheckPprof(*profile), "");
  EXPECT_THAT(Types(*profile),
              ElementsAre("cpu-samples/count", "cpu-time/nanoseconds", "wall-time/nanoseconds"));
}

TEST(DatadogBackend, TheMachineIsTagsUnlessTheUserHasSuchATag) {
  testing::SampleProfile sample = testing::EmptyProfile();
  sample.profile.machine = LabelSet({{"cpus", 4}, {"container_id", "abc"}, {"os", "Own"}});
  const auto messages =
      Build(MakeDatadogBackend({.tags = "os:mine", .agent_url = "http://a"}, Process()),
            testing::RequestOf(sample.profile, sample.symbols));
  EXPECT_NE(messages[0].body.find(",os:mine,cpus:4,container_id:abc\""), std::string::npos)
      << messages[0].body;
}

TEST(DatadogBackend, AForksChildHasAnotherRuntimeIdAndATracersIdBeatsBoth) {
  EncodedProfile encoded;
  const auto backend = MakeDatadogBackend({.agent_url = "http://a"}, Process());
  const std::string id = Between(Build(backend, encoded.request())[0].body, "runtime-id:", ",");
  encoded.profile.process_id = 4712;
  EXPECT_NE(Between(Build(backend, encoded.request())[0].body, "runtime-id:", ","), id);
  const auto traced =
      MakeDatadogBackend({.runtime_id = "the-tracers", .agent_url = "http://a"}, Process());
  EXPECT_THAT(Build(traced, encoded.request())[0].body, HasSubstr("runtime-id:the-tracers,"));
}

// But for the six bits that say what the id is, all of it is random.
TEST(DatadogBackend, EachPartOfARuntimeIdIsAnotherOneInAnotherProcess) {
  EncodedProfile encoded;
  const auto backend = MakeDatadogBackend({.agent_url = "http://a"}, Process());
  std::vector<std::set<std::string>> parts(5);
  for (std::uint32_t process = 1; process <= 32; ++process) {
    encoded.profile.process_id = process;
    const std::string id = Between(Build(backend, encoded.request())[0].body, "runtime-id:", ",");
    const std::vector<std::string> own = absl::StrSplit(id, '-');
    ASSERT_EQ(own.size(), parts.size()) << id;
    for (std::size_t i = 0; i < own.size(); ++i) parts[i].insert(own[i]);
  }
  for (const std::set<std::string>& part : parts) EXPECT_GT(part.size(), 16u);
}

TEST(DatadogBackend, EndpointsAreTheAgentASocketAFileOrDatadogItself) {
  const auto endpoint = [](const DatadogOptions& options) {
    const auto backend = MakeDatadogBackend(options, Process());
    EXPECT_TRUE(backend.ok()) << backend.status();
    return (*backend)->endpoint();
  };
  EXPECT_EQ(endpoint({.agent_host = "agent", .agent_port = 1234}).url,
            "http://agent:1234/profiling/v1/input");
  EXPECT_EQ(endpoint({.agent_host = "::1", .agent_port = 1234}).url,
            "http://[::1]:1234/profiling/v1/input");
  EXPECT_EQ(endpoint({.agent_url = "unix:///run/apm.socket"}).unix_socket, "/run/apm.socket");
  EXPECT_EQ(endpoint({.agent_url = "file:///tmp/dump"}).file, "/tmp/dump");
  const HttpEndpoint intake =
      endpoint({.agentless = true, .api_key = "the-key", .site = "datadoghq.eu"});
  EXPECT_EQ(intake.url, "https://intake.profile.datadoghq.eu/api/v2/profile");
  EXPECT_EQ(HeaderOf(intake.headers, "DD-API-KEY"), "the-key");
  const absl::Status status = MakeDatadogBackend({.agentless = true}, Process()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("DD_API_KEY"));
}

TEST(DatadogBackend, ARequestIsWrittenToAFileWithoutItsKey) {
  ManualHttpTools tools;
  const EncodedProfile encoded;
  HttpExporter exporter(
      MakeDatadogBackend({.service = "shop", .agent_url = "file:///dump/request"}, Process()), {},
      tools.Tools());
  ASSERT_TRUE(exporter.Export(encoded.request()).ok());
  ASSERT_TRUE(exporter.Export(encoded.request()).ok());
  EXPECT_THAT(tools.directories.Names("/dump"), ElementsAre("request.0", "request.1"));
  const std::string text = *tools.directories.Read("/dump/request.0");
  EXPECT_THAT(
      text,
      ::testing::StartsWith(
          "POST /profiling/v1/input HTTP/1.1\r\nHost: localhost\r\nUser-Agent: strobe/0.1.0\r\n"));
  EXPECT_THAT(text, HasSubstr("service:shop"));
}

TEST(DatadogBackend, AProfileThatNoEncoderTakesIsRefused) {
  testing::ExpectRefusesWrongProfiles(**MakeDatadogBackend({.agent_url = "http://a"}, Process()));
}

}  // namespace
}  // namespace strobe
