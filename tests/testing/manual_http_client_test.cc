#include "strobe/testing/fakes/manual_http_client.h"

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

TEST(ManualHttpServer, AnswersAsItIsToldAndKeepsWhatItAccepted) {
  ManualHttpServer server;
  ManualHttpClient client(server);
  EXPECT_EQ(client.Post({.body = "1"}, {})->status, 200);
  server.SetStatus(503, "7");
  EXPECT_EQ(client.Post({.body = "2"}, {})->retry_after, "7");
  server.SetUnreachable();
  EXPECT_TRUE(absl::IsUnavailable(client.Post({.body = "3"}, {}).status()));
  EXPECT_EQ(server.tries(), 3u);
  ASSERT_EQ(server.Accepted().size(), 1u);
  EXPECT_EQ(server.Accepted()[0].body, "1");
}

TEST(ManualHttpServer, NothingArrivesAfterTheDeadline) {
  ManualHttpServer server;
  ManualHttpClient client(server);
  const ExportDeadline now = ExportDeadline().By(std::chrono::steady_clock::now());
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Post({}, now).status()));
  EXPECT_EQ(server.tries(), 0u);
}

}  // namespace
}  // namespace strobe::testing
