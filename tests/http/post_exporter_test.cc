// The requests of this backend, byte for byte where it counts, and what answers mean to it.
#include "strobe/http/post_exporter.h"

#include <string>

#include "backends.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using testing::Build;
using testing::EncodedProfile;
using ::testing::HasSubstr;
using testing::HeaderOf;

TEST(PostBackend, PostsTheBytes) {
  const EncodedProfile encoded;
  const auto backend =
      MakePostBackend({.url = "https://me:pass@host/in?a=b", .headers = "X-Key=a%20key,X-Other=b"});
  const auto messages = Build(backend, encoded.request());
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].body, encoded.bytes);
  EXPECT_EQ(HeaderOf(messages[0].headers, "Content-Type"), "application/octet-stream");
  const HttpEndpoint& endpoint = (*backend)->endpoint();
  EXPECT_EQ(endpoint.url, "https://host/in?a=b");
  EXPECT_EQ(HeaderOf(endpoint.headers, "X-Key"), "a key");
  EXPECT_EQ(HeaderOf(endpoint.headers, "Authorization"), "Basic bWU6cGFzcw==");
  for (const HttpHeader& header : endpoint.headers)
    EXPECT_EQ(header.is_secret, header.name != "User-Agent") << header.name;
}

TEST(PostBackend, WrongOptionsAreNamed) {
  for (const PostOptions& options :
       {PostOptions{}, PostOptions{.url = "host"}, PostOptions{.url = "http://h", .headers = "x"},
        PostOptions{.url = "http://h", .headers = "a b=c"},
        PostOptions{.url = "http://h", .headers = "a=%0D%0AX: y"}}) {
    const absl::Status status = MakePostBackend(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("post."));
  }
}

// What code sets is in force, http options too: they are not those before the environment.
TEST(PostExporter, HasTheOptionsThatItWasGiven) {
  testing::ManualHttpTools tools;
  const EncodedProfile encoded;
  PostExporter exporter({.url = "http://host/in", .http = {.spool_directory = "/spool"}},
                        tools.Tools());
  EXPECT_TRUE(exporter.status().ok()) << exporter.status();
  tools.server.SetUnreachable();
  const auto where = exporter.Export(encoded.request());
  ASSERT_TRUE(where.ok()) << where.status();
  EXPECT_THAT(*where, HasSubstr("/spool/post.program.0/"));
}

}  // namespace
}  // namespace strobe
