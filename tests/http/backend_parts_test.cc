#include "../../src/http/backends/backend_parts.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(EndpointTest, HasThePathBehindTheUrlsOwn) {
  const auto endpoint = EndpointOf("url", "http://me:secret@host:80/base?x=1", "/ingest");
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->url, WithPath("http://host:80/base?x=1", "/ingest"));
  EXPECT_THAT(endpoint->url, HasSubstr("/base/ingest"));
  ASSERT_THAT(endpoint->headers, SizeIs(2));
  EXPECT_EQ(endpoint->headers[0].value, kUserAgent);
  EXPECT_EQ(endpoint->headers[1].name, "Authorization");
  EXPECT_TRUE(endpoint->headers[1].is_secret);
}

TEST(EndpointTest, MayBeASocketOrAFile) {
  EXPECT_EQ(EndpointOf("url", "unix:///run/a", "/ingest")->unix_socket, "/run/a");
  const auto file = EndpointOf("url", "file:///tmp/requests", "/ingest");
  EXPECT_EQ(file->file, "/tmp/requests");
  EXPECT_EQ(file->url, "http://localhost/ingest");
}

TEST(EndpointTest, AnErrorNamesTheField) {
  const auto endpoint = EndpointOf("parca.url", "http://me:secret@", "/");
  ASSERT_FALSE(endpoint.ok());
  EXPECT_THAT(std::string(endpoint.status().message()), HasSubstr("parca.url: "));
  EXPECT_THAT(std::string(endpoint.status().message()), Not(HasSubstr("secret")));
}

TEST(EndpointTest, ATokenIsASecretHeader) {
  HttpEndpoint endpoint;
  AddBearer(endpoint, Secret());
  EXPECT_TRUE(endpoint.headers.empty());
  AddBearer(endpoint, Secret("abc"));
  ASSERT_THAT(endpoint.headers, SizeIs(1));
  EXPECT_EQ(endpoint.headers[0].value, "Bearer abc");
  EXPECT_TRUE(endpoint.headers[0].is_secret);
}

TEST(EndpointTest, HeadersAreEncodedAsInUrls) {
  HttpEndpoint endpoint;
  ASSERT_TRUE(AddHeaders(endpoint, "headers", Secret("X-A=1,X-B=a%20b%2Cc")).ok());
  ASSERT_THAT(endpoint.headers, SizeIs(2));
  EXPECT_EQ(endpoint.headers[0].name, "X-A");
  EXPECT_EQ(endpoint.headers[1].value, "a b,c");
  EXPECT_TRUE(endpoint.headers[1].is_secret);
  EXPECT_TRUE(AddHeaders(endpoint, "headers", Secret()).ok());
}

TEST(EndpointTest, HeadersThatCouldDoHarmAreRefused) {
  for (const char* const text : {"X-A=secret%0D%0AX-B: 2", "X A=secret", "X-A=secret%zz",
                                 "X-A=secret%", "=secret", "secret", "X-A:=secret"}) {
    HttpEndpoint endpoint;
    const absl::Status status = AddHeaders(endpoint, "otlp.headers", Secret(text));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("otlp.headers: "));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
}

TEST(LabelNameTest, HasOnlyCharactersThatItMayHave) {
  EXPECT_EQ(LabelName("service_Name9"), "service_Name9");
  EXPECT_EQ(LabelName("service.name"), "service_name");
  EXPECT_EQ(LabelName("9lives"), "_9lives");
  EXPECT_EQ(LabelName(""), "_");
  EXPECT_EQ(LabelName("\xC3\xA4"), "__");
}

TEST(WithMachineTest, TheUsersLabelsComeFirstAndCountAlone) {
  const LabelSet machine({{"cpus", 4}, {"os", "Own"}, {"container_id", "abc"}});
  const auto texts = [&](std::vector<KeyValue> labels, MachinePart part) {
    std::string text;
    for (const KeyValue& label : WithMachine(std::move(labels), machine, part))
      text += label.key + "=" + label.value + " ";
    return text;
  };
  EXPECT_EQ(texts({}, MachinePart::kAll), "cpus=4 os=Own container_id=abc ");
  EXPECT_EQ(texts({{"os", "mine"}, {"a", "b"}}, MachinePart::kAll),
            "os=mine a=b cpus=4 container_id=abc ");
  EXPECT_EQ(texts({}, MachinePart::kShared), "cpus=4 os=Own ") << "a process is no series";
}

TEST(FirstOfTest, IsTheFirstThatIsNotEmpty) {
  EXPECT_EQ(FirstOf("a", "b"), "a");
  EXPECT_EQ(FirstOf("", "b"), "b");
  EXPECT_EQ(FirstOf("", ""), "");
}

TEST(JsonStringTest, EscapesWhatJsonWantsEscaped) {
  EXPECT_EQ(JsonString(""), "\"\"");
  EXPECT_EQ(JsonString("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(JsonString(std::string_view("\n\0\x1f", 3)), "\"\\u000a\\u0000\\u001f\"");
  EXPECT_EQ(JsonString("\xC3\xA4\xFF"), "\"\xC3\xA4?\"");
}

}  // namespace
}  // namespace strobe::internal
