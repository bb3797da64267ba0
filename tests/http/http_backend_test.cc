#include "strobe/http/http_backend.h"

#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(JudgeByStatus, EachStatusHasAVerdict) {
  struct Case {
    int status;
    Verdict verdict;
    absl::StatusCode code;
  };
  using enum absl::StatusCode;
  for (const auto& [status, verdict, code] :
       std::vector<Case>{{200, Verdict::kDelivered, kOk},
                         {202, Verdict::kDelivered, kOk},
                         {204, Verdict::kDelivered, kOk},
                         {400, Verdict::kRefused, kInvalidArgument},
                         {413, Verdict::kRefused, kOutOfRange},
                         {415, Verdict::kRefused, kInvalidArgument},
                         {422, Verdict::kRefused, kInvalidArgument},
                         {408, Verdict::kRetry, kUnavailable},
                         {429, Verdict::kRetry, kResourceExhausted},
                         {500, Verdict::kRetry, kUnavailable},
                         {502, Verdict::kRetry, kUnavailable},
                         {503, Verdict::kRetry, kUnavailable},
                         {504, Verdict::kRetry, kUnavailable},
                         {599, Verdict::kRetry, kUnavailable},
                         {301, Verdict::kStop, kUnavailable},
                         {307, Verdict::kStop, kUnavailable},
                         {401, Verdict::kStop, kUnauthenticated},
                         {403, Verdict::kStop, kPermissionDenied},
                         {404, Verdict::kStop, kNotFound},
                         {405, Verdict::kStop, kUnavailable},
                         {0, Verdict::kStop, kUnavailable},
                         {100, Verdict::kStop, kUnavailable},
                         {600, Verdict::kStop, kUnavailable},
                         {-1, Verdict::kStop, kUnavailable}}) {
    const Judgement judgement = JudgeByStatus({.status = status});
    EXPECT_EQ(judgement.verdict, verdict) << status;
    EXPECT_EQ(judgement.status.code(), code) << status;
    EXPECT_EQ(RefusesProfile(judgement.status), verdict == Verdict::kRefused) << status;
  }
}

TEST(JudgeByStatus, TheErrorHasTheAnswersBeginningMadePrintable) {
  const std::string message(
      JudgeByStatus({.status = 503, .body = "a\x1b[2J\n" + std::string(1000, 'x')})
          .status.message());
  EXPECT_THAT(message, AllOf(HasSubstr("503"), HasSubstr("a\\x1b[2J\\n")));
  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(std::string(JudgeByStatus({.status = 302}).status.message()),
              HasSubstr("a redirect, which is not followed"));
}

TEST(RetryAfter, IsReadAsSecondsOrAsADate) {
  using std::chrono::seconds;
  constexpr std::int64_t kNow = 784'111'777;  // Sun, 06 Nov 1994 08:49:37 GMT
  EXPECT_EQ(RetryAfter("120", kNow), seconds(120));
  EXPECT_EQ(RetryAfter("0", kNow), seconds(0));
  EXPECT_EQ(RetryAfter("-5", kNow), seconds(0));
  EXPECT_EQ(RetryAfter("999999999999", kNow), seconds(3600)) << "at most an hour";
  EXPECT_EQ(RetryAfter("Sun, 06 Nov 1994 08:50:37 GMT", kNow), seconds(60));
  EXPECT_EQ(RetryAfter("Sun, 06 Nov 1994 08:40:37 GMT", kNow), seconds(0));
  for (const char* text : {"", "soon", "12s", "1e3", "99999999999999999999", "Sun, 06 Nov 1994",
                           "Sun, 99 Nov 1994 08:50:37 GMT"})
    EXPECT_EQ(RetryAfter(text, kNow), std::nullopt) << text;
}

TEST(Messages, ComeBackAsTheyWere) {
  const std::vector<HttpMessage> messages{
      {.query = "a=b", .headers = {{.name = "X", .value = ""}}, .body = std::string("\0\xFF", 2)},
      {}};
  const std::string bytes = internal::SerializeMessages(messages);
  ASSERT_TRUE(internal::ParseMessages(bytes).has_value());
  EXPECT_EQ(*internal::ParseMessages(bytes), messages);
}

TEST(Messages, WhatWasNotWrittenIsRefused) {
  const std::string bytes =
      internal::SerializeMessages({{.query = "a", .headers = {{"X", "y"}}, .body = "body"}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(internal::ParseMessages(bytes.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(internal::ParseMessages(bytes + "x").has_value());
  EXPECT_FALSE(internal::ParseMessages(internal::SerializeMessages({})).has_value());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = '\xFF';
    static_cast<void>(internal::ParseMessages(damaged));  // neither crashes nor takes memory
  }
}

TEST(AmountOf, IsTheSumOfTheDefaultType) {
  EXPECT_EQ(internal::AmountOf(testing::EmptyProfile().profile), 0);
  Profile profile = testing::ProfileHead();
  profile.values = {1, 10, 2, 20};
  EXPECT_EQ(internal::AmountOf(profile), 30);
  EXPECT_EQ(internal::AmountOf(Profile()), 0);
}

}  // namespace
}  // namespace strobe
