// No file of a send is one of the program or crosses a fork, and no signal comes of a broken
// connection.
// loopback_server.py starts it.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/http/native_http.h"
#include "strobe/platform/linux/own_files.h"
#include "support/in_child.h"
#include "support/sockets.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

// The sockets of this process that are connected to the port.
int ConnectedTo(int port) { return testing::CountConnections(port, /*is_own_end=*/false); }

class ForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const server = std::getenv("STROBE_TEST_SERVER");
    if (server == nullptr) GTEST_SKIP() << "start it by tests/http/loopback_server.py";
    std::thread([this] { has_own_files_ = internal::TakeOwnFiles(); }).join();
    server_ = server;
    port_ = std::atoi(server_.substr(server_.rfind(':') + 1).c_str());
  }
  std::string server_;
  int port_ = 0;
  bool has_own_files_ = false;
};

TEST_F(ForkTest, AChildHasNoSocketOfASendThatIsUnderWay) {
  if (!has_own_files_) GTEST_SKIP() << "this process has a filter of system calls";
  std::atomic<std::int64_t> end_ns{INT64_MAX};
  std::thread sender([&] {
    static_cast<void>(
        MakeNativeHttpClient({})->Post({.url = server_ + "/hang"}, ExportDeadline(end_ns)));
  });
  testing::WaitUntil([&] { return ConnectedTo(port_) > 0; });
  EXPECT_TRUE(testing::HoldsInChild([&] { return ConnectedTo(port_) == 0; }));
  EXPECT_EQ(ConnectedTo(port_), 1) << "the parent's is as it was";
  end_ns = 0;
  sender.join();
  EXPECT_EQ(ConnectedTo(port_), 0) << "closed when the call returns";
}

// libcurl, its resolver and its pipes included: no number of theirs is one of the program's.
TEST_F(ForkTest, ASendThatIsUnderWayHasNoFileAmongThoseOfTheProgram) {
  if (!has_own_files_) GTEST_SKIP() << "this process has a filter of system calls";
  const auto files = [] {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator("/proc/thread-self/fd"))
      names.insert(file.path().filename().string());
    return names;
  };
  const std::set<std::string> before = files();
  std::atomic<std::int64_t> end_ns{INT64_MAX};
  std::thread sender([&] {
    static_cast<void>(
        MakeNativeHttpClient({})->Post({.url = server_ + "/hang"}, ExportDeadline(end_ns)));
  });
  testing::WaitUntil([&] { return ConnectedTo(port_) > 0; });
  EXPECT_EQ(files(), before);
  // What a daemon does.
  for (int number = 3; number < 1024; ++number) close(number);
  EXPECT_EQ(ConnectedTo(port_), 1);
  end_ns = 0;
  sender.join();
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
