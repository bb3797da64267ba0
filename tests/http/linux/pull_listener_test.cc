#include "../../../src/http/pull/linux/pull_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/http/pull_server.h"
#include "support/in_child.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

using ::testing::StartsWith;

int Connect(int port) {
  const int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(number, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return number;
  close(number);
  return -1;
}

std::string Received(int number) {
  std::string all;
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = read(number, bytes.data(), bytes.size())) > 0;)
    all.append(bytes.data(), static_cast<std::size_t>(got));
  close(number);
  return all;
}

std::string Ask(int port) {
  const std::string request = "GET /debug/pprof/cmdline HTTP/1.1\r\n\r\n";
  const int number = Connect(port);
  if (number < 0) return "not connected";
  if (send(number, request.data(), request.size(), MSG_NOSIGNAL) < 0) return "not sent";
  return Received(number);
}

PullHandler Handler() {
  return PullHandler({}, {MakePullFormat<FoldedEncoder>("folded")}, {}, "program");
}

TEST(PullListenerTest, TheOldestThatIsNotAnsweredMakesRoom) {
  PullListener listener(Handler());
  ASSERT_TRUE(listener.Start("127.0.0.1", 0).ok());
  std::vector<int> idle;
  for (std::size_t i = 0; i < PullListener::kMaxConnections + 1; ++i)
    idle.push_back(Connect(listener.port()));
  EXPECT_THAT(Ask(listener.port()), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_EQ(Received(idle[0]), "");
  EXPECT_EQ(Received(idle[1]), "");
  char byte = 0;
  EXPECT_EQ(recv(idle.back(), &byte, 1, MSG_DONTWAIT), -1) << "the newest stays";
  for (std::size_t i = 2; i < idle.size(); ++i) close(idle[i]);
}

TEST(PullListenerTest, ListensAgainWhenTheProgramHasClosedItsSocket) {
  PullListener listener(Handler());
  ASSERT_TRUE(listener.Start("127.0.0.1", 0).ok());
  const int port = listener.port();
  close_range(3, ~0U, 0);
  // Until the server looks, the kernel may still take connections for the closed one.
  testing::WaitUntil([&] { return Ask(port).starts_with("HTTP/1.1 200 OK"); });
}

TEST(PullListenerTest, AForksChildHasNoneAndLeavesItAlone) {
  PullListener listener(Handler());
  ASSERT_TRUE(listener.Start("127.0.0.1", 0).ok());
  EXPECT_TRUE(listener.IsOfThisProcess());
  EXPECT_TRUE(testing::HoldsInChild([&] { return !listener.IsOfThisProcess(); }));
  EXPECT_THAT(Ask(listener.port()), StartsWith("HTTP/1.1 200 OK"));
}

TEST(PullListenerTest, SaysThatItCannotListen) {
  PullListener first(Handler());
  ASSERT_TRUE(first.Start("localhost", 0).ok());
  PullListener second(Handler());
  EXPECT_TRUE(absl::IsUnavailable(second.Start("127.0.0.1", first.port())) ||
              first.port() != second.port());
  PullListener third(Handler());
  EXPECT_TRUE(absl::IsUnavailable(third.Start("192.0.2.1", 0)));
}

}  // namespace
}  // namespace strobe::internal
