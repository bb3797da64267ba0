#include "../../../src/http/pull/linux/pull_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/http/pull_server.h"

namespace strobe::internal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The client's end of a connection. Time passes as the test says.
class PullConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_ = ends[0];
    connection_.emplace(ServerSocket(ends[1]), now_);
  }
  void TearDown() override { close(client_); }

  bool Send(const std::string& text) {
    return send(client_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  std::string Received() {
    std::string all;
    std::array<char, 65536> bytes{};
    for (ssize_t got = 0; (got = read(client_, bytes.data(), bytes.size())) > 0;)
      all.append(bytes.data(), static_cast<std::size_t>(got));
    return all;
  }
  std::optional<PullRequest> Proceed() { return connection_->Proceed(now_); }
  void Pass(std::chrono::seconds time) { now_ += time; }

  PullConnection::Instant now_{};
  int client_ = -1;
  std::optional<PullConnection> connection_;
};

TEST_F(PullConnectionTest, ARequestMayComeByteByByte) {
  for (const char byte : std::string("GET /metrics HTTP/1.1\r\nHost: a\r\n\r")) {
    Send(std::string(1, byte));
    EXPECT_FALSE(Proceed().has_value());
    EXPECT_EQ(connection_->Wanted().events, POLLIN);
  }
  Send("\n");
  const std::optional<PullRequest> request = Proceed();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->path, "/metrics");
  EXPECT_TRUE(connection_->is_being_answered());
  EXPECT_EQ(connection_->Wanted().fd, -1);
  Pass(std::chrono::hours(1));
  EXPECT_FALSE(connection_->IsOver(now_)) << "a recording takes as long as it takes";
  connection_->Answer({.body = "text", .headers = {{"X-Go-Pprof", "1"}}}, now_);
  EXPECT_FALSE(Proceed().has_value());
  const std::string answer = Received();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 4\r\nX-Go-Pprof: 1\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\ntext"));
  EXPECT_FALSE(connection_->IsOver(now_)) << "the client may still send";
  shutdown(client_, SHUT_WR);
  Proceed();
  EXPECT_TRUE(connection_->IsOver(now_));
}

TEST_F(PullConnectionTest, TheWholeRequestHasOneDeadline) {
  for (int second = 0; second < PullServer::kRequestSeconds; ++second) {
    EXPECT_FALSE(connection_->IsOver(now_)) << second;
    Send("G");
    Proceed();
    Pass(std::chrono::seconds(1));
  }
  EXPECT_TRUE(connection_->IsOver(now_));
}

TEST_F(PullConnectionTest, AHeadWithoutEndIsRefused) {
  Send("GET / HTTP/1.1\r\nX: " + std::string(kMaxHeadBytes, 'a'));
  EXPECT_FALSE(Proceed().has_value());
  Proceed();
  EXPECT_THAT(Received(), StartsWith("HTTP/1.1 431 "));
}

TEST_F(PullConnectionTest, ABodyIsPassedOverUpToItsLimit) {
  Send("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(20000, 'z'));
  ASSERT_TRUE(Proceed().has_value());
  connection_->Answer({}, now_);
  Proceed();
  EXPECT_TRUE(connection_->IsOver(now_));
  EXPECT_THAT(Received(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(PullConnectionTest, ARefusalSaysWhatIsAllowed) {
  Send("POST / HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(Proceed().has_value());
  Proceed();
  EXPECT_THAT(Received(), HasSubstr("Allow: GET\r\n"));
}

TEST_F(PullConnectionTest, WhoTakesNothingOfTheAnswerIsLeft) {
  Send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Proceed().has_value());
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  connection_->Answer({.body = std::string(kBytes, 'b')}, now_);
  Proceed();
  EXPECT_EQ(connection_->Wanted().events, POLLOUT);
  Pass(std::chrono::seconds(PullServer::kRequestSeconds));
  EXPECT_FALSE(connection_->IsOver(now_)) << "a long answer has more time";
  Pass(std::chrono::seconds(60));
  EXPECT_TRUE(connection_->IsOver(now_));
}

TEST_F(PullConnectionTest, TheClientsEndIsTheConnections) {
  shutdown(client_, SHUT_WR);
  EXPECT_FALSE(Proceed().has_value());
  EXPECT_TRUE(connection_->IsOver(now_));
}

// The program closes files, and opens others in their places.
TEST_F(PullConnectionTest, WhatTheProgramHasTakenIsLeftAlone) {
  const int number = connection_->Wanted().fd;
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  ASSERT_EQ(dup2(pipe_ends[1], number), number);
  EXPECT_EQ(connection_->Wanted().fd, -1);
  Proceed();
  EXPECT_TRUE(connection_->IsOver(now_));
  connection_.reset();
  EXPECT_EQ(write(number, "x", 1), 1) << "it is still open";
  for (const int end : {pipe_ends[0], pipe_ends[1], number}) close(end);
}

}  // namespace
}  // namespace strobe::internal
