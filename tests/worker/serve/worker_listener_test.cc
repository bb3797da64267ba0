#include "strobe/worker/serve/worker_listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strobe::internal {
namespace {

constexpr std::int64_t kAnswerNs = 100'000'000'000;

// A listener on a thread, whose sessions answer each message, and count their ends.
class Listener : public ::testing::Test {
 protected:
  void Begin(std::size_t max_programs) {
    BeginWith(
        [this](const WorkerSocket& program) {
          while (program.Receive(-1).ok())
            static_cast<void>(program.Send(AnswerOf(MessageKind::kFlushed, absl::OkStatus())));
          ++ended_;
          return ServeEnd::kServed;
        },
        max_programs);
  }
  void BeginWith(WorkerListener::Serve serve,
                 std::size_t max_programs = WorkerListener::kMaxPrograms) {
    std::string pattern = ::testing::TempDir() + "/strobe-listener-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_EQ(pipe(stop_.data()), 0);
    absl::StatusOr<ListeningSocket> socket = ListeningSocket::Open(path());
    ASSERT_TRUE(socket.ok()) << socket.status();
    listener_.emplace(*std::move(socket), std::move(serve), max_programs);
    thread_ = std::thread([this] { result_ = listener_->Run(stop_[0]); });
  }
  void End() {
    close(stop_[1]);
    thread_.join();
    close(stop_[0]);
    std::filesystem::remove_all(directory_);
  }
  [[nodiscard]] std::string path() const { return directory_ + "/worker.sock"; }

  absl::Status result_ = absl::UnknownError("not run");
  std::atomic<int> ended_{0};
  std::optional<WorkerListener> listener_;

 private:
  std::string directory_;
  std::array<int, 2> stop_{-1, -1};
  std::thread thread_;
};

absl::Status Ask(const WorkerSocket& program) {
  if (absl::Status status = program.Send({.kind = MessageKind::kFlush}); !status.ok())
    return status;
  const absl::StatusOr<Message> answer = program.Receive(kAnswerNs);
  return answer.ok() ? absl::Status(static_cast<absl::StatusCode>(answer->code), answer->text)
                     : answer.status();
}

TEST_F(Listener, ServesProgramsAtATimeUntilItIsStopped) {
  Begin(3);
  std::array<absl::StatusOr<WorkerSocket>, 3> programs{
      ConnectToWorker(path()), ConnectToWorker(path()), ConnectToWorker(path())};
  for (int round = 0; round < 2; ++round) {
    for (const auto& program : programs) {
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_TRUE(Ask(*program).ok());
    }
  }
  programs[0] = WorkerSocket();
  EXPECT_TRUE(Ask(*programs[1]).ok()) << "the end of one is not that of another";
  End();
  EXPECT_TRUE(result_.ok()) << result_;
  EXPECT_EQ(ended_, 3) << "each session ends before the listener";
  EXPECT_TRUE(programs[1]->HasEnded());
  EXPECT_EQ(TextOf(listener_->counts()), "served 3 programs; refused 0");
}

TEST_F(Listener, ProgramsBeyondTheLimitAreToldSo) {
  Begin(1);
  const absl::StatusOr<WorkerSocket> first = ConnectToWorker(path());
  ASSERT_TRUE(first.ok() && Ask(*first).ok());
  const absl::StatusOr<WorkerSocket> second = ConnectToWorker(path());
  ASSERT_TRUE(second.ok());
  // Unread when the listener closes the connection; that must not lose the refusal. A listener that
  // is fast has closed it already.
  static_cast<void>(second->Send({.kind = MessageKind::kFlush}));
  const absl::StatusOr<Message> refusal = second->Receive(kAnswerNs);
  ASSERT_TRUE(refusal.ok()) << refusal.status();
  EXPECT_EQ(StatusOf(*refusal, MessageKind::kWelcome).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Ask(*first).ok());
  End();
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(TextOf(listener_->counts()), "served 1 programs; refused 1: 1 no room");
}

// A worker's own threads greet such peers; each ends at its first message.
TEST_F(Listener, PeersAreRefusedByReason) {
  BeginWith([](const WorkerSocket& program) {
    const absl::StatusOr<Message> first = program.Receive(kAnswerNs);
    return first.ok() ? ServeEnd::kServed : RefusalOf(first.status());
  });
  const MessageHead good{.kind = MessageKind::kHello};
  MessageHead other = good;
  other.version = MessageHead::kVersion + 1;
  MessageHead longer = good;
  longer.text_bytes = 1;
  const auto send_and_end = [this](const void* bytes, std::size_t size) {
    absl::StatusOr<WorkerSocket> peer = ConnectToWorker(path());
    ASSERT_TRUE(peer.ok()) << peer.status();
    ASSERT_EQ(send(peer->descriptor(), bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    EXPECT_EQ(peer->Receive(kAnswerNs).status().code(), absl::StatusCode::kUnavailable);
  };
  ASSERT_TRUE(ConnectToWorker(path()).ok());  // and leaves
  send_and_end(&good, sizeof(good));
  send_and_end(&other, sizeof(other));
  send_and_end("GARBLED! and what else there may be", 35);
  send_and_end(&longer, sizeof(longer));
  send_and_end(&good, sizeof(good) - 1);
  End();
  EXPECT_EQ(TextOf(listener_->counts()),
            "served 1 programs; refused 5: 2 other version, 2 malformed, 1 left without hello");
}

// A silent peer delays no other.
TEST_F(Listener, SlowPeersDelayNoProgram) {
  std::atomic<bool> is_late{false};
  BeginWith([&](const WorkerSocket& program) {
    absl::StatusOr<Message> first = program.Receive(1'000'000);
    while (absl::IsDeadlineExceeded(first.status()) && !is_late) first = program.Receive(1'000'000);
    if (!first.ok()) return RefusalOf(first.status());
    static_cast<void>(program.Send(AnswerOf(MessageKind::kFlushed, absl::OkStatus())));
    return ServeEnd::kServed;
  });
  std::vector<absl::StatusOr<WorkerSocket>> silent(20);
  for (auto& peer : silent) {
    peer = ConnectToWorker(path());
    ASSERT_TRUE(peer.ok()) << peer.status();
  }
  const absl::StatusOr<WorkerSocket> program = ConnectToWorker(path());
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(Ask(*program).ok());
  is_late = true;
  for (const auto& peer : silent)
    EXPECT_EQ(peer->Receive(kAnswerNs).status().code(), absl::StatusCode::kUnavailable);
  End();
  EXPECT_EQ(TextOf(listener_->counts()), "served 1 programs; refused 20: 20 too slow");
}

}  // namespace
}  // namespace strobe::internal
