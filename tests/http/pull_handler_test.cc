#include "strobe/http/pull_handler.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/http/open_metrics.h"
#include "strobe/http/pull_server.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using testing::EncodedProfile;
using ::testing::HasSubstr;

class PullHandlerTest : public ::testing::Test {
 protected:
  PullHandler Make(PullServerOptions options = {}) {
    return {{.record = [this](const RecordingOptions& wanted) -> absl::StatusOr<Profile> {
               asked.push_back(wanted);
               if (!status.ok()) return status;
               return encoded.profile;
             },
             .symbolize = [](const Profile&) { return Symbols(); },
             .stats = [] { return Stats(); }},
            {MakePullFormat<PprofEncoder>("pprof"),
             {.name = "text",
              .content_type = "text/plain",
              .file_suffix = ".txt",
              .encode = [](const Profile& profile, const Symbols&) -> absl::StatusOr<std::string> {
                return std::to_string(profile.samples.size());
              }}},
            std::move(options),
            std::string("program\0--flag", 14)};
  }
  PullResponse Get(const std::string& path, std::map<std::string, std::string> query = {}) {
    return Make().Handle({.path = path, .query = std::move(query), .host = "localhost:6060"});
  }

  const EncodedProfile encoded;
  std::vector<RecordingOptions> asked;
  absl::Status status;
};

TEST_F(PullHandlerTest, AProfileIsPprofAsGoSendsIt) {
  const PullResponse response = Get("/debug/pprof/profile", {{"seconds", "7"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/octet-stream");
  ASSERT_TRUE(testing::ReadPprof(response.body).has_value());
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].duration, std::chrono::seconds(7));
  EXPECT_THAT(asked[0].value_types, ElementsAre("samples", "cpu"));
  EXPECT_THAT(response.headers,
              ElementsAre(::testing::Pair("Content-Disposition",
                                          "attachment; filename=\"profile.pb.gz\"")));
}

TEST_F(PullHandlerTest, WhatWasBeforeIsAskedForByItsSeconds) {
  EXPECT_EQ(Get("/debug/pprof/profile", {{"last", "30"}}).status, 200);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].last, std::chrono::seconds(30));
  EXPECT_EQ(asked[0].duration, std::chrono::seconds(0));
  EXPECT_TRUE(Validate(asked[0]).ok());
  EXPECT_EQ(Get("/debug/pprof/profile", {{"last", "0"}}).status, 400);
  EXPECT_EQ(Get("/debug/pprof/profile", {{"last", "30"}, {"seconds", "5"}}).status, 400);
  EXPECT_EQ(Get("/debug/pprof/profile", {{"last", "30"}, {"hz", "500"}}).status, 400);
}

TEST_F(PullHandlerTest, EachNameHasItsValuesAndItsTime) {
  for (const auto& [name, type, seconds] :
       std::vector<std::tuple<const char*, const char*, int>>{{"profile", "samples", 30},
                                                              {"wall", "wall", 30},
                                                              {"allocs", "alloc_objects", 5},
                                                              {"heap", "inuse_objects", 5},
                                                              {"mutex", "contentions", 5},
                                                              {"block", "contentions", 5}}) {
    asked.clear();
    EXPECT_EQ(Get(std::string("/debug/pprof/") + name).status, 200);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].value_types.front(), type);
    EXPECT_EQ(asked[0].duration, std::chrono::seconds(seconds));
  }
}

TEST_F(PullHandlerTest, ARequestCanAskForARate) {
  EXPECT_EQ(Get("/debug/pprof/profile").status, 200);
  EXPECT_EQ(Get("/debug/pprof/profile", {{"hz", "1000"}}).status, 200);
  EXPECT_EQ(Get("/debug/pprof/wall", {{"hz", "10000"}}).status, 200);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].frequency_hz, 0) << "the program's";
  EXPECT_EQ(asked[1].frequency_hz, 1000);
  EXPECT_EQ(asked[2].frequency_hz, 10'000);
}

TEST_F(PullHandlerTest, FormatsAndLabels) {
  EXPECT_EQ(Get("/debug/pprof/profile", {{"format", "text"}}).body, "2");
  EXPECT_EQ(Get("/debug/pprof/profile", {{"format", "text"}, {"label", "thread name=main"}}).body,
            "1");
  EXPECT_EQ(Get("/debug/pprof/profile", {{"format", "text"}, {"label", "thread id=102"}}).body,
            "1");
  EXPECT_EQ(Get("/debug/pprof/profile", {{"format", "text"}, {"label", "no=thing"}}).body, "0");
}

TEST_F(PullHandlerTest, WrongRequestsAreErrorsThatPprofPrints) {
  using Query = std::map<std::string, std::string>;
  for (const auto& [path, query, wanted] : std::vector<std::tuple<std::string, Query, int>>{
           {"/debug/pprof/profile", {{"seconds", "0"}}, 400},
           {"/debug/pprof/profile", {{"seconds", "-1"}}, 400},
           {"/debug/pprof/profile", {{"seconds", "301"}}, 400},
           {"/debug/pprof/profile", {{"seconds", "1e3"}}, 400},
           {"/debug/pprof/profile", {{"seconds", ""}}, 400},
           {"/debug/pprof/profile", {{"seconds", "99999999999999999999"}}, 400},
           {"/debug/pprof/profile", {{"seconds", "\x1b[2J"}}, 400},
           {"/debug/pprof/profile", {{"format", "xml"}}, 400},
           {"/debug/pprof/profile", {{"format", ""}}, 400},
           {"/debug/pprof/profile", {{"label", "thread"}}, 400},
           {"/debug/pprof/profile", {{"hz", "0"}}, 400},
           {"/debug/pprof/profile", {{"hz", "10001"}}, 400},
           {"/debug/pprof/profile", {{"hz", "100.5"}}, 400},
           {"/debug/pprof/heap", {{"hz", "1000"}}, 400},
           {"/debug/pprof/goroutine", {}, 404},
           {"/debug/pprof/../../etc/passwd", {}, 404},
           {"/debug", {}, 404},
           {"/", {}, 404},
           {"", {}, 404}}) {
    const PullResponse response = Get(path, query);
    EXPECT_EQ(response.status, wanted) << path;
    EXPECT_THAT(response.headers, ElementsAre(::testing::Pair("X-Go-Pprof", "1")));
    EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
    EXPECT_TRUE(response.body.ends_with('\n')) << response.body;
    EXPECT_EQ(response.body.find('\x1b'), std::string::npos);
  }
  EXPECT_TRUE(asked.empty()) << "nothing was recorded for them";
}

TEST_F(PullHandlerTest, WhatARecordingSaysIsTheAnswer) {
  for (const auto& [error, wanted] : std::vector<std::pair<absl::Status, int>>{
           {absl::InvalidArgumentError("wall is not enabled"), 404},
           {absl::FailedPreconditionError("the profiler is not running"), 503},
           {absl::ResourceExhaustedError("too many"), 503},
           {absl::InternalError("broken"), 500}}) {
    status = error;
    const PullResponse response = Get("/debug/pprof/profile");
    EXPECT_EQ(response.status, wanted);
    EXPECT_THAT(response.body, HasSubstr(std::string(error.message())));
  }
}

TEST_F(PullHandlerTest, WhatIsNotMeasuredSaysWhatToAdd) {
  status = absl::InvalidArgumentError("not enabled");
  for (const auto& [name, wanted] : std::map<std::string, std::string>{
           {"profile", "sampling.cpu_frequency_hz"},
           {"wall", "STROBE_WALL_FREQUENCY_HZ=10"},
           {"heap", "strobe-allocations"},
           {"allocs", "strobe::AllocationTraits"},
           {"mutex", "strobe-locks"},
           {"block", "strobe::ContentionTraits"},
           {"threadcreate", "wall has the stacks of all registered threads"},
           {"goroutine", "wall has the stacks of all registered threads"}}) {
    const PullResponse response = Get("/debug/pprof/" + name);
    EXPECT_EQ(response.status, 404) << name;
    EXPECT_THAT(response.body, HasSubstr(wanted));
    EXPECT_THAT(response.body, ::testing::EndsWith("\n"));
    EXPECT_EQ(std::ranges::count(response.body, '\n'), 1);
  }
}

TEST_F(PullHandlerTest, ATokenIsNeededWhereThereIsOne) {
  const PullHandler handler = Make({.token = "the-token"});
  const auto get = [&](const std::string& authorization) {
    return handler.Handle({.path = "/metrics", .authorization = authorization, .host = "localhost"})
        .status;
  };
  EXPECT_EQ(get("Bearer the-token"), 200);
  EXPECT_EQ(get("Basic " + absl::Base64Escape("any:the-token")), 200) << "pprof's way";
  for (const std::string wrong :
       {"", "Bearer ", "Bearer the-toke", "Bearer the-tokenx", "bearer the-token", "the-token",
        "Basic the-token", "Basic !!", "Basic dGhlLXRva2Vu=", "Bearer the-tokenthe-token"}) {
    if (wrong == "Basic dGhlLXRva2Vu=") continue;
    EXPECT_EQ(get(wrong), 401) << wrong;
  }
  EXPECT_TRUE(internal::IsEqualInConstantTime("", ""));
  EXPECT_FALSE(internal::IsEqualInConstantTime("a", ""));
}

TEST_F(PullHandlerTest, ANameOfElsewhereIsRefusedOnTheLoopbackInterface) {
  const auto get = [&](const PullHandler& handler, const std::string& host) {
    return handler.Handle({.path = "/metrics", .host = host}).status;
  };
  const PullHandler handler = Make();
  for (const char* host : {"localhost", "localhost:6060", "127.0.0.1:6060", "[::1]:6060", ""})
    EXPECT_EQ(get(handler, host), 200) << host;
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "127.evil.example:6060"})
    EXPECT_EQ(get(handler, host), 403) << host;
  EXPECT_EQ(get(Make({.address = "0.0.0.0"}), "shop.example:6060"), 200);
}

TEST(PullServerOptions, TheirVariablesAreKnownToEveryProfiler) {
  for (const auto& row : PullServerOptionTable())
    EXPECT_TRUE(internal::IsKnownVariable(row.variable)) << row.variable;
}

TEST_F(PullHandlerTest, ACancelledRecordingIsAnError) {
  const PullHandler handler = Make();
  handler.Cancel();
  EXPECT_EQ(handler.Handle({.path = "/debug/pprof/profile"}).status, 503);
  EXPECT_TRUE(asked.at(0).cancelled->load());
}

TEST_F(PullHandlerTest, TheIndexTheCommandLineAndTheMetrics) {
  EXPECT_THAT(Get("/debug/pprof/").body, HasSubstr("href=\"profile?seconds=5\""));
  EXPECT_EQ(Get("/debug/pprof/cmdline").body, std::string("program\0--flag", 14));
  const PullResponse metrics = Get("/metrics");
  EXPECT_EQ(metrics.content_type, kOpenMetricsContentType);
  EXPECT_TRUE(metrics.body.ends_with("# EOF\n"));
}

}  // namespace
}  // namespace strobe
