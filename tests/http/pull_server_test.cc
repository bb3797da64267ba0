// A profiler's server, asked over a real connection.
#include "strobe/http/pull_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "get.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/platform/linux/own_files.h"
#include "strobe/strobe.h"
#include "strobe/testing/pprof_reader.h"
#include "support/in_child.h"
#include "support/sockets.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::Connect;
using testing::Get;
using ::testing::HasSubstr;

// The connections of this process that a server at the URL has accepted.
int CountAccepted(const std::string& url) {
  return testing::CountConnections(std::atoi(url.substr(url.rfind(':') + 1).c_str()),
                                   /*is_own_end=*/true);
}

class PullServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(profiler_.Start().ok());
    ASSERT_TRUE(server_.Start().ok());
  }
  Profiler profiler_{{.exporter = {.directory = ::testing::TempDir() + "pull_server_test"}}};
  PullServer server_{profiler_, {.port = 0}};
};

TEST_F(PullServerTest, AProfileOfThisProgramIsThere) {
  const Registration registration = profiler_.RegisterThread("busy");
  std::atomic<bool> is_done{false};
  std::string answer;
  std::thread client([&] {
    answer = Get(server_.url(), "/debug/pprof/profile?seconds=1");
    is_done = true;
  });
  while (!is_done) {
  }
  client.join();
  EXPECT_THAT(answer, ::testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  const auto profile = testing::ReadPprof(answer.substr(answer.find("\r\n\r\n") + 4));
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(testing::CheckPprof(*profile), "");
  EXPECT_FALSE(profile->samples.empty());
}

TEST_F(PullServerTest, ErrorsAndMetrics) {
  const std::string answer = Get(server_.url(), "/debug/pprof/wall?seconds=1");
  EXPECT_THAT(answer, HasSubstr("404"));
  EXPECT_THAT(answer, HasSubstr("X-Go-Pprof: 1\r\n"));
  EXPECT_THAT(Get(server_.url(), "/metrics"), HasSubstr("strobe_samples_total"));
  EXPECT_THAT(Get(server_.url(), "/debug/pprof/cmdline"), HasSubstr("http_pull_server_test"));
}

// Such a thread cannot close what the server has open.
TEST_F(PullServerTest, NobodyListensWhenAThreadWithFilesOfItsOwnHasStoppedIt) {
  const std::string url = server_.url();
  std::thread([&] {
    internal::TakeOwnFiles();
    server_.Stop();
  }).join();
  EXPECT_EQ(Get(url, "/metrics"), "no connection");
}

TEST_F(PullServerTest, StopEndsWhatIsUnderWay) {
  std::string answer;
  const std::string url = server_.url();
  std::thread client([&] { answer = Get(url, "/debug/pprof/profile?seconds=300"); });
  // Either way the answer is an error, whether the recording has begun by then or not.
  testing::WaitUntil([&] { return CountAccepted(url) == 1; });
  const auto begin = std::chrono::steady_clock::now();
  server_.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 200s) << "not at the recording's end";
  client.join();
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("200 OK")));
  EXPECT_EQ(server_.url(), "");
  EXPECT_TRUE(server_.Start().ok()) << "and it may begin again";
}

TEST_F(PullServerTest, AForksChildHasNoSocketOfIt) {
  const int connection = Connect(server_.url());
  ASSERT_GE(connection, 0);
  const std::string url = server_.url();
  testing::WaitUntil([&] { return CountAccepted(url) == 1; });
  EXPECT_TRUE(testing::HoldsInChild([&] { return CountAccepted(url) == 0; }));
  close(connection);
  EXPECT_THAT(Get(server_.url(), "/metrics"), HasSubstr("200 OK")) << "the parent's goes on";
}

// main's objects end in a child as well, which has none of the server's threads to wait for.
TEST_F(PullServerTest, AForksChildStopsNothing) {
  EXPECT_TRUE(testing::HoldsInChild([&] {
    server_.Stop();
    return server_.url().empty();
  }));
  EXPECT_THAT(Get(server_.url(), "/metrics"), HasSubstr("200 OK"));
}

TEST(PullServer, WrongOptionsAndAddressesAreErrors) {
  Profiler profiler;
  EXPECT_TRUE(absl::IsInvalidArgument(PullServer(profiler, {.port = 70000}).Start()));
  EXPECT_TRUE(absl::IsInvalidArgument(PullServer(profiler, {.address = ""}).Start()));
  EXPECT_TRUE(absl::IsInvalidArgument(PullServer(profiler, {.token = "a b"}).Start()));
  EXPECT_EQ(
      PullServer(profiler, {.address = "192.0.2.1", .port = 7999}).Start(),
      absl::UnavailableError("cannot listen at 192.0.2.1:7999: Cannot assign requested address"));
}

}  // namespace
}  // namespace strobe
