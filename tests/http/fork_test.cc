// No socket of a send crosses a fork, and no signal comes of a broken connection.
// loopback_server.py starts it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/http/native_http.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

// The sockets of this process that are connected to the port; those that an exec hands on, or all.
int ConnectedTo(int port, bool is_inherited = false) {
  int count = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port &&
        (!is_inherited || (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0))
      ++count;
  }
  return count;
}

class ForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const server = std::getenv("STROBE_TEST_SERVER");
    if (server == nullptr) GTEST_SKIP() << "start it by tests/http/loopback_server.py";
    server_ = server;
    port_ = std::atoi(server_.substr(server_.rfind(':') + 1).c_str());
  }
  std::string server_;
  int port_ = 0;
};

TEST_F(ForkTest, AChildHasNoSocketOfASendThatIsUnderWay) {
  std::atomic<std::int64_t> end_ns{INT64_MAX};
  std::thread sender([&] {
    static_cast<void>(
        MakeNativeHttpClient({})->Post({.url = server_ + "/hang"}, ExportDeadline(end_ns)));
  });
  testing::WaitUntil([&] { return ConnectedTo(port_) > 0; });
  const pid_t child = fork();
  if (child == 0) _exit(ConnectedTo(port_));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(ConnectedTo(port_), 1) << "the parent's is as it was";
  EXPECT_EQ(ConnectedTo(port_, /*is_inherited=*/true), 0) << "nor does an exec hand it on";
  end_ns = 0;
  sender.join();
  EXPECT_EQ(ConnectedTo(port_), 0) << "closed when the call returns";
}

// Strobe's own threads block all signals; here the signal would end the process.
TEST_F(ForkTest, ABrokenConnectionRaisesNoSignal) {
  signal(SIGPIPE, SIG_DFL);
  const std::string tls = std::getenv("STROBE_TEST_SERVER_TLS");
  for (int i = 0; i < 5; ++i) {
    for (const std::string& server : {server_, tls}) {
      static_cast<void>(
          MakeNativeHttpClient({.ca_file = std::getenv("STROBE_TEST_CA")})
              ->Post({.url = server + "/early_413", .body = std::string(20'000'000, 'x')}, {}));
    }
  }
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace strobe
