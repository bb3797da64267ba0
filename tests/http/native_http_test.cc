// The client of this build against a server that misbehaves: loopback_server.py starts it, and then
// this program.
#include "strobe/http/native_http.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

// The time for what is not cut by a deadline on purpose.
constexpr std::chrono::seconds kPatience{100};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class NativeHttpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (server_.empty()) GTEST_SKIP() << "start it by tests/http/loopback_server.py";
  }
  absl::StatusOr<HttpResponse> Post(const std::string& path, std::string body = "body",
                                    std::chrono::milliseconds timeout = kPatience) {
    return PostTo(server_ + path, std::move(body), timeout);
  }
  static absl::StatusOr<HttpResponse> PostTo(const std::string& url, std::string body = "body",
                                             std::chrono::milliseconds timeout = kPatience,
                                             HttpClientOptions options = {}) {
    return MakeNativeHttpClient(options)->Post(
        {.url = url,
         .headers = {{.name = "Content-Type", .value = "text/plain"},
                     {.name = "Key", .value = "a-secret-key", .is_secret = true}},
         .body = std::move(body)},
        ExportDeadline().By(Clock::now() + timeout));
  }

#ifdef _WIN32
  static constexpr bool kIsWindows = true;  // where these tests run under Wine
#else
  static constexpr bool kIsWindows = false;
#endif
  const std::string server_ = Variable("STROBE_TEST_SERVER");
  const HttpClientOptions trusted_{.ca_file = Variable("STROBE_TEST_CA")};
};

TEST_F(NativeHttpTest, TheRequestArrivesWhole) {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  const auto response = Post("/echo/path?a=b%20c", every_byte);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->content_type, "application/json");
  EXPECT_THAT(response->body, HasSubstr("/echo/path?a=b%20c\n256\nPOST"));
  EXPECT_THAT(response->body, HasSubstr("Key: a-secret-key"));
  EXPECT_THAT(response->body, HasSubstr("Content-Type: text/plain"));
  EXPECT_THAT(response->body, Not(HasSubstr("Expect:")));
  EXPECT_TRUE(response->body.ends_with(every_byte));
}

TEST_F(NativeHttpTest, ManyBytesArriveAlsoAtASlowReader) {
  EXPECT_THAT(Post("/echo", std::string(8'000'000, 'x'))->body, HasSubstr("\n8000000\n"));
  EXPECT_THAT(Post("/slow_read", std::string(2'000'000, 'x'))->body, HasSubstr("\n2000000\n"));
  EXPECT_THAT(Post("/echo", "")->body, HasSubstr("\n0\n"));
}

TEST_F(NativeHttpTest, AnAnswerOfAnyStatusIsNoError) {
  for (const int status : {200, 204, 400, 403, 413, 422, 429, 500, 503})
    EXPECT_EQ(Post("/status/" + std::to_string(status))->status, status);
  EXPECT_EQ(Post("/status/429/17")->retry_after, "17");
  EXPECT_EQ(Post("/status/503")->body, "the reason");
}

TEST_F(NativeHttpTest, TheFinalAnswerCounts) {
  if (kIsWindows) GTEST_SKIP() << "Wine 8 takes an interim answer for a broken one";
  const auto response = Post("/continued");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "at last");
  EXPECT_EQ(response->retry_after, "") << "that of an interim answer means nothing";
}

TEST_F(NativeHttpTest, ARedirectIsNotFollowed) {
  EXPECT_EQ(Post("/redirect")->status, 307);
  EXPECT_EQ(Post("/counted/redirect")->body, "0");
}

TEST_F(NativeHttpTest, BrokenAnswersAreErrors) {
  for (const char* path : {"/reset", "/garbage", "/empty", "/half_head", "/half_body",
                           "/half_closed", "/long_head", "/wrong_status"}) {
    // Wine neither sees that a head is cut nor that it is too long.
    if (kIsWindows && std::string_view(path).ends_with("_head")) continue;
    const auto response = Post(path);
    ASSERT_FALSE(response.ok()) << path << " " << response->status;
    EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable)
        << path << ": " << response.status();
    EXPECT_FALSE(response.status().message().empty()) << path;
    EXPECT_THAT(std::string(response.status().message()), Not(HasSubstr("a-secret-key")));
  }
}

TEST_F(NativeHttpTest, HeadersThatDoNotEndAreNotKept) {
  if (kIsWindows) GTEST_SKIP() << "WinHTTP has limits of its own";
  for (const char* path : {"/trailers", "/interim_answers"}) {
    const auto response = Post(path);
    EXPECT_TRUE(absl::IsUnavailable(response.status())) << path << " " << response.status();
  }
}

TEST_F(NativeHttpTest, AnEarlyRefusalIsReadOrTheConnectionIsLost) {
  // Wine may go on sending until the deadline.
  const auto response =
      Post("/early_413", std::string(50'000'000, 'x'), kIsWindows ? 2s : kPatience);
  if (response.ok()) {
    EXPECT_EQ(response->status, 413);
  } else {
    EXPECT_TRUE(absl::IsUnavailable(response.status()) ||
                (kIsWindows && absl::IsDeadlineExceeded(response.status())))
        << response.status();
  }
}

TEST_F(NativeHttpTest, ABodyWithoutEndIsCut) {
  const auto response = Post("/endless");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body.size(), kMaxHttpBodyBytes);
}

TEST_F(NativeHttpTest, TheDeadlineEndsEveryWait) {
  for (const char* path : {"/hang", "/trickle"}) {
    const auto begin = Clock::now();
    const auto response = Post(path, "body", 300ms);
    EXPECT_TRUE(absl::IsDeadlineExceeded(response.status())) << response.status();
    EXPECT_GE(Clock::now() - begin, 300ms);
  }
}

// While the client waits: the server has counted its request by then.
TEST_F(NativeHttpTest, TheDeadlineMayComeNearer) {
  std::atomic<std::int64_t> end_ns{INT64_MAX};
  const std::string before = Post("/counted/hang")->body;
  std::thread stop([&] {
    for (int looks = 0; looks < 10'000 && Post("/counted/hang")->body == before; ++looks)
      std::this_thread::sleep_for(1ms);
    end_ns = 0;
  });
  const auto response =
      MakeNativeHttpClient({})->Post({.url = server_ + "/hang"}, ExportDeadline(end_ns));
  EXPECT_TRUE(absl::IsDeadlineExceeded(response.status())) << response.status();
  stop.join();
  EXPECT_NE(Post("/counted/hang")->body, before);
}

TEST_F(NativeHttpTest, NobodyListens) {
  // A port that was free a moment ago.
  EXPECT_TRUE(absl::IsUnavailable(PostTo("http://127.0.0.1:1/").status()));
  EXPECT_TRUE(absl::IsUnavailable(PostTo("http://host.invalid/").status()));
}

TEST_F(NativeHttpTest, NoUrlIsAnError) {
  for (const char* url : {"", "nothing", "ftp://127.0.0.1/", "file:///etc/passwd", "http://"}) {
    EXPECT_FALSE(PostTo(url).ok()) << url;
  }
}

TEST_F(NativeHttpTest, ACertificateOfACaThatIsTrustedIsAccepted) {
  if (kIsWindows) GTEST_SKIP() << "WinHTTP knows the system's store only";
  const auto response =
      PostTo(Variable("STROBE_TEST_SERVER_TLS") + "/echo", "body", kPatience, trusted_);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
}

TEST_F(NativeHttpTest, AnyOtherCertificateIsRefused) {
  // Wine cannot tell a certificate that it does not accept from a handshake that failed.
  const auto is_refused = [](const absl::StatusOr<HttpResponse>& response) {
    return kIsWindows
               ? absl::StrContains(response.status().message(), "certificate is not accepted")
               : absl::IsFailedPrecondition(response.status());
  };
  EXPECT_TRUE(is_refused(PostTo(Variable("STROBE_TEST_SERVER_TLS") + "/echo")))
      << "the system does not trust the tests' CA";
  for (const char* name : {"OTHER", "UNKNOWN", "EXPIRED"}) {
    // Without a file of certificates, they are refused as the first is.
    const auto response =
        PostTo(Variable((std::string("STROBE_TEST_SERVER_") + name).c_str()) + "/count/" + name,
               "body", kPatience, kIsWindows ? HttpClientOptions() : trusted_);
    EXPECT_TRUE(is_refused(response)) << name << response.status();
  }
  EXPECT_FALSE(
      PostTo(Variable("STROBE_TEST_SERVER_TLS"), "", kPatience, {.ca_file = "/no/such"}).ok());
}

TEST_F(NativeHttpTest, TheProxyIsUsedAndItsPasswordIsInNoError) {
  // The server takes the place of a proxy: it is asked for the whole URL.
  const auto response = PostTo("http://host.invalid/echo", "body", kPatience,
                               {.proxy = "http://me:proxy-password@" + server_.substr(7)});
  EXPECT_TRUE(response.ok()) << response.status();
  const auto refused = PostTo("https://host.invalid/", "body", kPatience,
                              {.proxy = "http://me:proxy-password@127.0.0.1:1"});
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), Not(HasSubstr("proxy-password")));
}

TEST_F(NativeHttpTest, ToolsAreTheSystems) {
  const HttpTools tools = NativeHttpTools();
  EXPECT_NE(tools.directories, nullptr);
  EXPECT_THAT(tools.program, Not(HasSubstr("/")));
  const auto begin = Clock::now();
  tools.wait(begin + 20ms, {});
  EXPECT_GE(Clock::now() - begin, 20ms);
  tools.wait(begin + 1h, ExportDeadline().By(begin));
  EXPECT_LT(Clock::now() - begin, 10min) << "the deadline ends it";
  for (int i = 0; i < 100; ++i) {
    const double random = tools.random();
    EXPECT_GE(random, 0);
    EXPECT_LE(random, 1);
  }
}

}  // namespace
}  // namespace strobe
