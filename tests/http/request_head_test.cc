#include "../../src/http/pull/request_head.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

RequestHead HeadOf(const std::string& lines) { return RequestHead::Of(lines + "\r\n\r\n"); }
int RefusalOf(const std::string& lines) { return HeadOf(lines).refusal; }

TEST(RequestHeadTest, EndsWithAnEmptyLine) {
  EXPECT_EQ(HeadBytes(""), 0U);
  EXPECT_EQ(HeadBytes("GET / HTTP/1.1\r\nHost: a\r\n"), 0U);
  EXPECT_EQ(HeadBytes("GET / HTTP/1.1\r\n\r"), 0U);
  EXPECT_EQ(HeadBytes("GET / HTTP/1.1\r\n\r\nGET"), 18U);
  EXPECT_EQ(HeadBytes("GET / HTTP/1.1\n\nGET"), 16U);
}

TEST(RequestHeadTest, SaysWhatIsAskedFor) {
  const RequestHead head = HeadOf(
      "GET /debug/pprof/profile?seconds=5&label=a%3Db+c&empty&&=x HTTP/1.1\r\n"
      "hOST:localhost:6060\r\nAUTHORIZATION: \t Bearer x \r\nAccept: */*");
  EXPECT_EQ(head.refusal, 0);
  EXPECT_EQ(head.request.path, "/debug/pprof/profile");
  EXPECT_THAT(head.request.query,
              ElementsAre(Pair("empty", ""), Pair("label", "a=b c"), Pair("seconds", "5")));
  EXPECT_EQ(head.request.host, "localhost:6060");
  EXPECT_EQ(head.request.authorization, "Bearer x");
  EXPECT_EQ(HeadOf("GET /%6detrics%zz%4 HTTP/1.0").request.path, "/metrics%zz%4");
  EXPECT_EQ(HeadOf("GET /metrics#here?x HTTP/1.1").request.path, "/metrics");
}

TEST(RequestHeadTest, AUrlNamesTheHost) {
  const RequestHead head = HeadOf("GET HTTP://evil.example:80/metrics HTTP/1.1\r\nHost: localhost");
  EXPECT_EQ(head.refusal, 0);
  EXPECT_EQ(head.request.host, "evil.example:80");
  EXPECT_EQ(head.request.path, "/metrics");
}

TEST(RequestHeadTest, RefusesWhatIsNoRequest) {
  for (const std::string lines :
       {"", "GET", "GET /", "GET  HTTP/1.1", "GET x HTTP/1.1", "GET http:///x HTTP/1.1",
        "GET / HTTPS", "\r\nGET / HTTP/1.1", "\x16\x03\x01", "GET / HTTP/1.1\r\nHost",
        "GET / HTTP/1.1\r\n: x", "GET / HTTP/1.1\r\nHost : x", "GET / HTTP/1.1\r\nX: y\r\n folded",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
        "GET / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b",
        "GET / HTTP/1.1\r\nContent-Length: x", "GET / HTTP/1.1\r\nContent-Length: -1",
        "GET / HTTP/1.1\r\nX: \x1B[2J"})
    EXPECT_EQ(RefusalOf(lines), 400) << lines;
  EXPECT_EQ(RequestHead::Of(std::string_view("GET /\0 HTTP/1.1\r\n\r\n", 19)).refusal, 400);
}

TEST(RequestHeadTest, RefusesWhatItDoesNotServe) {
  EXPECT_EQ(RefusalOf("POST /metrics HTTP/1.1"), 405);
  EXPECT_EQ(RefusalOf("get /metrics HTTP/1.1"), 405);
  EXPECT_EQ(RefusalOf("GET /metrics HTTP/2.0"), 505);
  EXPECT_EQ(RefusalOf("GET /metrics HTTP/1.1 HTTP/1.1"), 505);
  EXPECT_EQ(RefusalOf("GET / HTTP/1.1\r\nContent-Length: 4096"), 0);
  EXPECT_EQ(RefusalOf("GET / HTTP/1.1\r\nContent-Length: 4097"), 413);
  EXPECT_EQ(RefusalOf("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999"), 413);
}

}  // namespace
}  // namespace strobe::internal
