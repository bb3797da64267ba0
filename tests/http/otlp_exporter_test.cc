// The requests of this backend, byte for byte where it counts, and what answers mean to it.
#include "strobe/http/otlp_exporter.h"

#include <string>

#include "backends.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using testing::Build;
using testing::EncodedProfile;
using testing::Gunzip;
using testing::HeaderOf;

TEST(OtlpBackend, PostsTheProfileCompressed) {
  const EncodedProfile encoded;
  const ExportRequest request = encoded.request();
  const OtlpOptions encoding{.resource = {{"service.name", "shop"}}};
  const std::string bytes = *OtlpEncoder(encoding).Encode(encoded.profile, encoded.symbols);
  const auto backend = MakeOtlpBackend(
      {.endpoint = "http://collector:4318/", .headers = "api-key=the%20key"}, encoding);
  auto messages = Build(backend, request);
  EXPECT_EQ((*backend)->endpoint().url, "http://collector:4318/v1development/profiles");
  EXPECT_EQ(HeaderOf((*backend)->endpoint().headers, "api-key"), "the key");
  EXPECT_EQ(HeaderOf(messages[0].headers, "Content-Type"), "application/x-protobuf");
  EXPECT_EQ(HeaderOf(messages[0].headers, "Content-Encoding"), "gzip");
  EXPECT_EQ(Gunzip(messages[0].body), bytes);
  const auto plain =
      MakeOtlpBackend({.profiles_endpoint = "http://other/path", .compression = "none"}, encoding);
  messages = Build(plain, request);
  EXPECT_EQ((*plain)->endpoint().url, "http://other/path") << "nothing is added";
  EXPECT_EQ(HeaderOf(messages[0].headers, "Content-Encoding"), "");
  EXPECT_EQ(messages[0].body, bytes);
}

TEST(OtlpBackend, OnlyTheAnswersThatOtlpNamesAreRetried) {
  const auto backend = MakeOtlpBackend({});
  const auto verdict = [&](int status, std::string body = "") {
    return (*backend)->Judge({.status = status, .body = std::move(body)}).verdict;
  };
  for (const int status : {429, 502, 503, 504}) EXPECT_EQ(verdict(status), Verdict::kRetry);
  for (const int status : {400, 413, 408, 500, 501}) EXPECT_EQ(verdict(status), Verdict::kRefused);
  for (const int status : {301, 401, 404}) EXPECT_EQ(verdict(status), Verdict::kStop);
  EXPECT_EQ(verdict(200), Verdict::kDelivered);
  EXPECT_EQ(verdict(200, std::string("\x0A\x00", 2)), Verdict::kDelivered) << "nothing rejected";
  EXPECT_EQ(verdict(200, "\x0A\x02\x08\x03"), Verdict::kRefused) << "three profiles rejected";
  EXPECT_EQ(verdict(200, "\xFF\xFF garbage"), Verdict::kDelivered);
}

}  // namespace
}  // namespace strobe
