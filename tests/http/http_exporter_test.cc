#include "strobe/http/http_exporter.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::EncodedProfile;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::ManualDirectories;
using testing::ManualHttpTools;
using ::testing::Not;

// Sends the profile's number as the body, in one message or in several.
class NumberBackend final : public HttpBackend {
 public:
  explicit NumberBackend(int messages = 1) : messages_(messages) {}
  [[nodiscard]] std::string_view name() const override { return "server"; }
  [[nodiscard]] const HttpEndpoint& endpoint() const override { return endpoint_; }
  [[nodiscard]] bool TakesProfiles() const override { return false; }
  [[nodiscard]] absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const override {
    if (request.bytes.empty()) return absl::InvalidArgumentError("no profile");
    std::vector<HttpMessage> messages;
    for (int i = 0; i < messages_; ++i) {
      messages.push_back({.query = absl::StrCat("part=", i),
                          .headers = {{.name = "Content-Type", .value = "text/plain"}},
                          .body = absl::StrCat(request.profile.sequence)});
    }
    return messages;
  }

 private:
  const int messages_;
  const HttpEndpoint endpoint_{
      .url = "https://server/in?key=in-the-query",
      .headers = {
          {.name = "Key", .value = "a-secret-key", .is_secret = true},
          {.name = "Authorization", .value = "Basic dXNlcjpwYXNzd29yZA==", .is_secret = true},
          {.name = "Plain", .value = "plain"}}};
};

class HttpExporterTest : public ::testing::Test {
 protected:
  HttpExporter Make(HttpOptions options = {}, int messages = 1) {
    return {std::make_shared<const NumberBackend>(messages), std::move(options), tools_.Tools()};
  }
  static HttpOptions Spooled() { return {.spool_directory = "/spool"}; }
  absl::StatusOr<std::string> Export(HttpExporter& exporter, std::uint64_t sequence,
                                     bool has_newer = false) {
    Profile profile = encoded_.profile;
    profile.sequence = sequence;
    return exporter.Export({.bytes = "bytes",
                            .file_suffix = ".pb.gz",
                            .content_type = "text/plain",
                            .profile = profile,
                            .symbols = {},
                            .has_newer = has_newer});
  }
  std::vector<std::string> Accepted() const {
    std::vector<std::string> bodies;
    for (const HttpRequest& request : tools_.server.Accepted()) bodies.push_back(request.body);
    return bodies;
  }
  void Pass(std::chrono::nanoseconds time) { tools_.now += time; }

  ManualHttpTools tools_;
  const EncodedProfile encoded_;
};

TEST_F(HttpExporterTest, DeliversAndSaysWhere) {
  HttpExporter exporter = Make();
  EXPECT_TRUE(tools_.client_options.empty()) << "construction has no side effects";
  EXPECT_EQ(*Export(exporter, 7), "https://server/in#7") << "without the query";
  ASSERT_EQ(tools_.server.Accepted().size(), 1u);
  const HttpRequest request = tools_.server.Accepted()[0];
  EXPECT_EQ(request.url, "https://server/in?key=in-the-query&part=0");
  EXPECT_EQ(request.headers.size(), 4u);
  EXPECT_EQ(exporter.account().delivered, 1u);
}

TEST_F(HttpExporterTest, TriesAgainAfterWaitsThatGrow) {
  HttpExporter exporter = Make({.attempts = 4});
  tools_.server.SetStatus(503);
  const absl::Status status = Export(exporter, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("server: https://server/in: the server answered 503"),
                    Not(HasSubstr("query"))));
  EXPECT_EQ(tools_.server.tries(), 4u);
  EXPECT_THAT(tools_.waits, ElementsAre(250ms, 500ms, 1s));
}

TEST_F(HttpExporterTest, WaitsAreSpreadByChance) {
  tools_.random = 0;
  HttpExporter exporter = Make({.attempts = 2});
  tools_.server.SetStatus(503);
  EXPECT_FALSE(Export(exporter, 1).ok());
  EXPECT_THAT(tools_.waits, ElementsAre(125ms)) << "at least half";
}

TEST_F(HttpExporterTest, PausesAfterAFailureForLongerEachTime) {
  HttpExporter exporter = Make({.attempts = 1});
  tools_.server.SetUnreachable();
  std::vector<std::chrono::seconds> pauses;
  for (int failure = 0; failure < 9; ++failure) {
    EXPECT_FALSE(Export(exporter, 1).ok());
    const std::size_t tries = tools_.server.tries();
    std::chrono::seconds pause{0};
    for (; tools_.server.tries() == tries; ++pause) {
      Pass(1s);
      const absl::Status status = Export(exporter, 1).status();
      EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"))
          << "while it pauses, too";
    }
    pauses.push_back(pause);
    Pass(1000s);
  }
  EXPECT_THAT(pauses, Each(AllOf(Ge(5s), Le(300s))));
  EXPECT_EQ(pauses.front(), 5s);
  EXPECT_EQ(pauses.back(), 300s);
  tools_.server.SetStatus(200);
  EXPECT_TRUE(Export(exporter, 1).ok());
}

TEST_F(HttpExporterTest, RetryAfterCountsAndEndsTheTriesOfOneExport) {
  HttpExporter exporter = Make();
  tools_.server.SetStatus(429, "42");
  EXPECT_TRUE(absl::IsResourceExhausted(Export(exporter, 1).status()));
  EXPECT_EQ(tools_.server.tries(), 1u);
  tools_.server.SetStatus(200);
  Pass(41s);
  EXPECT_FALSE(Export(exporter, 1).ok());
  EXPECT_EQ(tools_.server.tries(), 1u);
  Pass(1s);
  EXPECT_TRUE(Export(exporter, 1).ok());
}

TEST_F(HttpExporterTest, AServerThatHangsIsTriedOnceAnExport) {
  HttpExporter exporter = Make();
  tools_.server.SetAnswer([](const HttpRequest&) -> absl::StatusOr<HttpResponse> {
    return absl::DeadlineExceededError("no answer");
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(Export(exporter, 1).status()));
  EXPECT_EQ(tools_.server.tries(), 1u);
}

TEST_F(HttpExporterTest, ARefusalDropsOneProfileAndAnotherIsSentAtOnce) {
  HttpExporter exporter = Make();
  tools_.server.SetStatus(413);
  EXPECT_TRUE(RefusesProfile(Export(exporter, 1).status()));
  tools_.server.SetStatus(200);
  EXPECT_TRUE(Export(exporter, 2).ok());
}

TEST_F(HttpExporterTest, AServerThatTakesNothingIsTriedRarely) {
  for (const int status : {301, 302, 307, 401, 403, 404, 405, 418}) {
    ManualHttpTools tools;
    HttpExporter exporter(std::make_shared<const NumberBackend>(), {}, tools.Tools());
    tools.server.SetStatus(status);
    for (int second = 0; second < 299; ++second) {
      const auto sent = exporter.Export(encoded_.request());
      ASSERT_FALSE(sent.ok());
      EXPECT_FALSE(RefusesProfile(sent.status())) << "it may be delivered once that is mended";
      tools.now += 1s;
    }
    EXPECT_EQ(tools.server.tries(), 1u) << status;
  }
}

TEST_F(HttpExporterTest, AWrongConfigurationIsEachExportsErrorAndRefusesNothing) {
  HttpExporter exporter = Make({.attempts = 11});
  EXPECT_FALSE(exporter.status().ok());
  const absl::Status status = Export(exporter, 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("http.attempts"));
  EXPECT_EQ(exporter.Check(), status) << "and what Start returns";
  EXPECT_EQ(Make({}).Check(), absl::OkStatus());
  HttpExporter without(absl::InvalidArgumentError("no URL"), {}, tools_.Tools());
  EXPECT_EQ(Export(without, 1).status(), absl::FailedPreconditionError("no URL"));
  EXPECT_EQ(tools_.server.tries(), 0u);
}

TEST_F(HttpExporterTest, SecretsAreInNoErrorEvenIfTheServerRepeatsThem) {
  HttpExporter exporter = Make({.http_proxy = "http://me:proxy-password@proxy",
                                .https_proxy = "http://me:proxy-password@proxy"});
  tools_.server.SetAnswer([](const HttpRequest& request) {
    std::string body = "wrong: password and user:password, http://me:proxy-password@proxy, ";
    for (const HttpHeader& header : request.headers) body += header.value + " ";
    return HttpResponse{.status = 400, .body = body + request.url};
  });
  const std::string message(Export(exporter, 1).status().message());
  EXPECT_THAT(message, HasSubstr("plain")) << message;
  for (const char* secret : {"a-secret-key", "dXNlcjpwYXNzd29yZA", "password", "in-the-query"})
    EXPECT_THAT(message, Not(HasSubstr(secret)));
  tools_.server.SetAnswer([](const HttpRequest&) -> absl::StatusOr<HttpResponse> {
    return absl::UnavailableError("proxy http://me:proxy-password@proxy does not answer");
  });
  EXPECT_THAT(std::string(Export(exporter, 2).status().message()), Not(HasSubstr("password")));
  EXPECT_THAT(exporter.account().last_error, Not(HasSubstr("password")));
}

TEST_F(HttpExporterTest, OfSeveralMessagesTheDeliveredAreNotRepeated) {
  HttpExporter exporter = Make({.attempts = 1}, /*messages=*/3);
  std::map<std::string, int> arrived;
  bool is_broken = true;
  tools_.server.SetAnswer([&](const HttpRequest& request) {
    if (is_broken && request.url.ends_with("part=1")) return HttpResponse{.status = 503};
    ++arrived[request.url.substr(request.url.size() - 1)];
    return HttpResponse{.status = 200};
  });
  EXPECT_FALSE(Export(exporter, 1).ok());
  is_broken = false;
  Pass(10s);
  EXPECT_TRUE(Export(exporter, 1).ok());
  EXPECT_EQ(arrived, (std::map<std::string, int>{{"0", 1}, {"1", 1}, {"2", 1}}));
  EXPECT_EQ(exporter.account().delivered, 1u) << "one profile";
}

TEST_F(HttpExporterTest, OneMessageThatIsRefusedKeepsNoOtherFromBeingSent) {
  HttpExporter exporter = Make({}, /*messages=*/2);
  tools_.server.SetAnswer([&](const HttpRequest& request) {
    return HttpResponse{.status = request.url.ends_with("part=0") ? 422 : 200};
  });
  EXPECT_TRUE(RefusesProfile(Export(exporter, 1).status()));
  EXPECT_EQ(tools_.server.Accepted().size(), 1u);
}

TEST_F(HttpExporterTest, WithASpoolWhatCannotBeSentIsOnDiskAndSentLaterTheOldestFirst) {
  HttpExporter exporter = Make(Spooled());
  tools_.server.SetUnreachable();
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto where = Export(exporter, i);
    ASSERT_TRUE(where.ok()) << "it is safe";
    EXPECT_THAT(*where, HasSubstr("/spool/server.program.0/"));
    Pass(10s);
  }
  EXPECT_EQ(exporter.account().spool.waiting, 4u);
  EXPECT_THAT(exporter.account().last_error, HasSubstr("connection refused"));
  tools_.server.SetStatus(200);
  Pass(300s);
  EXPECT_EQ(*Export(exporter, 4), "https://server/in#4");
  EXPECT_THAT(Accepted(), ElementsAre("4", "0", "1", "2", "3"));
  EXPECT_EQ(exporter.account().spool, SpoolStats{});
  EXPECT_EQ(exporter.account().delivered, 5u);
  EXPECT_EQ(exporter.account().last_error, "");
}

TEST_F(HttpExporterTest, WhatWaitsOnDiskDoesNotDelayNewerProfiles) {
  HttpExporter exporter = Make(Spooled());
  tools_.server.SetUnreachable();
  ASSERT_TRUE(Export(exporter, 0).ok());
  ASSERT_TRUE(Export(exporter, 1).ok());
  tools_.server.SetStatus(200);
  Pass(300s);
  ASSERT_TRUE(Export(exporter, 2, /*has_newer=*/true).ok());
  EXPECT_THAT(Accepted(), ElementsAre("2"));
  ASSERT_TRUE(Export(exporter, 3).ok());
  EXPECT_THAT(Accepted(), ElementsAre("2", "3", "0", "1"));
}

TEST_F(HttpExporterTest, ASpoolHoldsNoSecret) {
  HttpExporter exporter = Make(Spooled());
  tools_.server.SetStatus(500);
  ASSERT_TRUE(Export(exporter, 0).ok());
  const auto names = tools_.directories.Names("/spool/server.program.0");
  ASSERT_EQ(names.size(), 1u);
  const std::string file = *tools_.directories.Read("/spool/server.program.0/" + names[0]);
  EXPECT_THAT(file, HasSubstr("text/plain"));
  for (const char* secret : {"a-secret-key", "dXNlcjpwYXNzd29yZA", "password", "in-the-query"})
    EXPECT_THAT(file, Not(HasSubstr(secret)));
}

TEST_F(HttpExporterTest, TheNextSessionSendsWhatTheLastOneLeft) {
  {
    HttpExporter exporter = Make(Spooled());
    tools_.server.SetUnreachable();
    ASSERT_TRUE(Export(exporter, 0).ok());
    const HttpExporter copy(exporter);
    EXPECT_EQ(copy.account().spool.waiting, 0u) << "a copy is a session of its own";
  }
  tools_.server.SetStatus(200);
  HttpExporter exporter = Make(Spooled());
  ASSERT_TRUE(Export(exporter, 1).ok());
  EXPECT_THAT(Accepted(), ElementsAre("1", "0"));
  EXPECT_EQ(exporter.account().spool.found, 1u);
  EXPECT_EQ(exporter.account().delivered, 2u);
}

TEST_F(HttpExporterTest, ARefusedProfileIsNotKeptAndOneOfTheSpoolIsCounted) {
  HttpExporter exporter = Make(Spooled());
  tools_.server.SetStatus(503);
  ASSERT_TRUE(Export(exporter, 0).ok());
  Pass(300s);
  tools_.server.SetAnswer([](const HttpRequest& request) {
    return HttpResponse{.status = request.body == "1" ? 200 : 400};
  });
  ASSERT_TRUE(Export(exporter, 1).ok());
  EXPECT_TRUE(RefusesProfile(Export(exporter, 2).status())) << "the profiler counts that one";
  const ExporterAccount account = exporter.account();
  EXPECT_EQ(account.drops[static_cast<std::size_t>(ExportDrop::kRefused)], 1u);
  EXPECT_EQ(account.amount_dropped, 50'000'000) << "of CPU time";
  EXPECT_EQ(account.spool.waiting, 0u);
}

TEST_F(HttpExporterTest, ADamagedFileIsSkippedAndCounted) {
  HttpExporter exporter = Make(Spooled());
  tools_.server.SetUnreachable();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Export(exporter, i).ok());
  tools_.directories.With([](ManualDirectories::State& state) {
    state.directories.at("/spool/server.program.0")->begin()->second.bytes.back() ^= 1;
  });
  tools_.server.SetStatus(200);
  Pass(300s);
  ASSERT_TRUE(Export(exporter, 3).ok());
  EXPECT_THAT(Accepted(), ElementsAre("3", "1", "2"));
  EXPECT_EQ(exporter.account().drops[static_cast<std::size_t>(ExportDrop::kUnreadable)], 1u);
}

TEST_F(HttpExporterTest, WithoutRoomOnTheDiskItIsSentAllTheSame) {
  HttpExporter exporter = Make(Spooled());
  tools_.directories.With([](ManualDirectories::State& state) { state.room_bytes = 10; });
  EXPECT_TRUE(Export(exporter, 0).ok());
  EXPECT_THAT(Accepted(), ElementsAre("0"));
  tools_.server.SetUnreachable();
  const absl::Status status = Export(exporter, 1).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("connection refused"), HasSubstr("No space left")));
  EXPECT_EQ(exporter.account().delivered, 1u);
}

// Each sending takes at least 4 ms, so in the first half of the 10 ms two begin at most; on a
// machine that stands still, fewer.
TEST_F(HttpExporterTest, TheSpoolIsSentOnlyUntilTheDeadline) {
  HttpExporter exporter = Make({.timeout_s = 0.01, .spool_directory = "/spool"});
  tools_.server.SetUnreachable();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(Export(exporter, i).ok());
  Pass(300s);
  tools_.server.SetAnswer([](const HttpRequest&) {
    std::this_thread::sleep_for(4ms);
    return HttpResponse{.status = 200};
  });
  ASSERT_TRUE(Export(exporter, 10).ok());
  EXPECT_LE(Accepted().size(), 3u) << "the new one, and two that waited";
  EXPECT_EQ(exporter.account().delivered + exporter.account().spool.waiting, 11u);
}

// The server takes its time for the first that waited, but less than the deadline allows. On a
// machine that stands still, that one may not be sent, so the tries go on until it was.
TEST_F(HttpExporterTest, NoSpooledProfileIsSentInTheSecondHalfOfTheTime) {
  constexpr int kMostTries = 20;
  bool is_seen = false;
  for (int i = 0; i < kMostTries && !is_seen; ++i) {
    ManualHttpTools tools;
    HttpExporter exporter(std::make_shared<const NumberBackend>(),
                          {.timeout_s = 2, .spool_directory = "/spool"}, tools.Tools());
    const auto send = [&](std::uint64_t sequence) {
      Profile profile = encoded_.profile;
      profile.sequence = sequence;
      return exporter
          .Export({.bytes = "bytes",
                   .file_suffix = ".pb.gz",
                   .content_type = "text/plain",
                   .profile = profile,
                   .symbols = {}})
          .ok();
    };
    tools.server.SetUnreachable();
    for (std::uint64_t sequence = 0; sequence < 10; ++sequence) ASSERT_TRUE(send(sequence));
    tools.now += 300s;
    tools.server.SetAnswer([](const HttpRequest& request) {
      if (request.body == "0") std::this_thread::sleep_for(1100ms);
      return HttpResponse{.status = 200};
    });
    ASSERT_TRUE(send(10));
    std::vector<std::string> bodies;
    for (const HttpRequest& request : tools.server.Accepted()) bodies.push_back(request.body);
    EXPECT_THAT(bodies, Each(::testing::AnyOf("10", "0"))) << "no other, whatever the time";
    EXPECT_GE(exporter.account().spool.waiting, 9u);
    is_seen =
        bodies == std::vector<std::string>{"10", "0"} && exporter.account().last_error.empty();
  }
  EXPECT_TRUE(is_seen);
}

// A backend that fails at random, for four simulated hours at a period of 10 s. What the account
// says is what the server has seen.
TEST_F(HttpExporterTest, TheAccountAddsUpWhateverTheServerDoes) {
  for (const bool has_spool : {false, true}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      ManualHttpTools tools;
      HttpExporter exporter(std::make_shared<const NumberBackend>(static_cast<int>(seed % 3) + 1),
                            {.spool_directory = has_spool ? "/spool" : "", .spool_bytes = 65536},
                            tools.Tools());
      std::minstd_rand random(static_cast<unsigned>(seed + 1));
      std::map<std::string, std::map<std::string, int>> arrived;  // by body, by part
      int mood = 0;
      tools.server.SetAnswer([&](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
        if (random() % 40 == 0) mood = static_cast<int>(random() % 8);
        switch (mood) {
          case 0: return absl::UnavailableError("reset");
          case 1: return absl::DeadlineExceededError("hangs");
          case 2: return HttpResponse{.status = 500};
          case 3: return HttpResponse{.status = 429, .retry_after = "30"};
          case 4:
            if (random() % 8 == 0) return HttpResponse{.status = 400};
            break;
          case 5: return HttpResponse{.status = 302};
          default: break;
        }
        ++arrived[request.body][request.url];
        return HttpResponse{.status = 200};
      });
      std::uint64_t made = 0, refused = 0, failed = 0;
      for (std::uint64_t period = 0; period < 1440; ++period) {
        Profile profile = encoded_.profile;
        profile.sequence = period;
        const auto sent = exporter.Export({.bytes = "bytes",
                                           .file_suffix = ".pb.gz",
                                           .content_type = "text/plain",
                                           .profile = profile,
                                           .symbols = {},
                                           .has_newer = random() % 10 == 0});
        ++made;
        if (!sent.ok()) ++(RefusesProfile(sent.status()) ? refused : failed);
        tools.now += 10s;
      }
      const ExporterAccount account = exporter.account();
      std::uint64_t dropped = 0;
      for (const std::uint64_t drops : account.drops) dropped += drops;
      EXPECT_EQ(made, account.delivered + account.spool.waiting + dropped + refused + failed);
      if (has_spool) {
        EXPECT_EQ(failed, 0u);
      }
      for (const auto& [body, parts] : arrived) {
        for (const auto& [url, times] : parts) EXPECT_EQ(times, 1) << body << " " << url;
      }
      EXPECT_GE(arrived.size(), account.delivered) << "a part of a refused one may arrive";
    }
  }
}

}  // namespace
}  // namespace strobe
