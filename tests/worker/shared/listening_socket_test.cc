#include "strobe/worker/shared/listening_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "strobe/core/settings/known_variables.h"

namespace strobe::internal {
namespace {

class Listening : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/strobe-listen-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string path() const { return root_ + "/own/worker.sock"; }
  [[nodiscard]] std::string directory() const { return root_ + "/own"; }

 private:
  std::string root_;
};

absl::StatusCode OpenCode(const std::string& path) {
  return ListeningSocket::Open(path).status().code();
}
absl::StatusCode ConnectCode(const std::string& path) {
  return ConnectToWorker(path).status().code();
}

TEST_F(Listening, AProgramConnectsAndIsKnown) {
  absl::StatusOr<ListeningSocket> listening = ListeningSocket::Open(path());
  ASSERT_TRUE(listening.ok()) << listening.status();
  struct stat info {};
  ASSERT_EQ(stat(directory().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_EQ(listening->Accept().status().code(), absl::StatusCode::kUnavailable);
  const absl::StatusOr<WorkerSocket> program = ConnectToWorker(path());
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<WorkerSocket> accepted = listening->Accept();
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_EQ(accepted->PeerProcess(), getpid());
  EXPECT_EQ(program->PeerProcess(), getpid());
  ASSERT_TRUE(program->Send({.kind = MessageKind::kFlush}).ok());
  const absl::StatusOr<Message> message = accepted->Receive(-1);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->kind, MessageKind::kFlush);
}

TEST_F(Listening, OneWorkerListensAtAPath) {
  {
    const absl::StatusOr<ListeningSocket> first = ListeningSocket::Open(path());
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(OpenCode(path()), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(ConnectCode(path()), absl::StatusCode::kOk) << "the first one listens still";
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(ConnectCode(path()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(OpenCode(path()), absl::StatusCode::kOk);
}

TEST_F(Listening, TheSocketOfADeadWorkerIsReplaced) {
  std::filesystem::create_directory(directory());
  ASSERT_EQ(chmod(directory().c_str(), 0700), 0);
  const int dead = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path().size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, path().c_str());
  ASSERT_EQ(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(dead);
  EXPECT_EQ(ConnectCode(path()), absl::StatusCode::kUnavailable);
  const absl::StatusOr<ListeningSocket> listening = ListeningSocket::Open(path());
  ASSERT_TRUE(listening.ok()) << listening.status();
  EXPECT_EQ(ConnectCode(path()), absl::StatusCode::kOk);
}

// Others could connect, or listen in the worker's place.
TEST_F(Listening, ADirectoryThatOthersMayUseIsRefusedOnBothSides) {
  const absl::StatusOr<ListeningSocket> listening = ListeningSocket::Open(path());
  ASSERT_TRUE(listening.ok());
  for (const mode_t mode : {0710U, 0701U, 0777U}) {
    ASSERT_EQ(chmod(directory().c_str(), mode), 0);
    EXPECT_EQ(ConnectCode(path()), absl::StatusCode::kPermissionDenied) << mode;
    EXPECT_EQ(OpenCode(directory() + "/other"), absl::StatusCode::kPermissionDenied) << mode;
  }
  ASSERT_EQ(chmod(directory().c_str(), 0700), 0);
  EXPECT_EQ(ConnectCode(path()), absl::StatusCode::kOk);
  const std::string link = directory() + "-link";
  std::filesystem::create_symlink(directory(), link);
  EXPECT_EQ(ConnectCode(link + "/worker.sock"), absl::StatusCode::kUnavailable);
}

TEST_F(Listening, PathsWithoutADirectoryOfTheirOwnAreRefused) {
  for (const char* wrong : {"", "worker.sock", "/worker.sock", "/tmp/", "\0abstract"})
    EXPECT_EQ(OpenCode(wrong), absl::StatusCode::kInvalidArgument) << wrong;
  EXPECT_EQ(OpenCode(path() + std::string(100, 'x')), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenCode(directory() + "/no/such/worker.sock"), absl::StatusCode::kUnavailable);
}

TEST(WorkerSocketVariable, IsKnownToEveryProfiler) {
  EXPECT_TRUE(IsKnownVariable(kWorkerSocketVariable));
}

TEST_F(Listening, APathMayBeLong) {
  const std::string deep = directory() + std::string(150, 'd');
  const absl::StatusOr<ListeningSocket> listening = ListeningSocket::Open(deep + "/worker.sock");
  ASSERT_TRUE(listening.ok()) << listening.status();
  EXPECT_EQ(ConnectCode(deep + "/worker.sock"), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace strobe::internal
