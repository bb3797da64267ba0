#include "strobe/worker/worker_listener.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace strobe::internal {
namespace {

constexpr std::int64_t kAnswerNs = 20'000'000'000;

// A listener on a thread, whose sessions answer each message, and count their ends.
class Listener : public ::testing::Test {
 protected:
  void Begin(std::size_t max_programs) {
    std::string pattern = ::testing::TempDir() + "/strobe-listener-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_EQ(pipe(stop_.data()), 0);
    absl::StatusOr<ListeningSocket> socket = ListeningSocket::Open(path());
    ASSERT_TRUE(socket.ok()) << socket.status();
    listener_.emplace(
        *std::move(socket),
        [this](const WorkerSocket& program) {
          while (program.Receive(-1).ok())
            static_cast<void>(program.Send(AnswerOf(MessageKind::kFlushed, absl::OkStatus())));
          ++ended_;
        },
        max_programs);
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
  EXPECT_EQ(listener_->counts().served, 3U);
  EXPECT_EQ(listener_->counts().refused_beyond + listener_->counts().refused_users, 0U);
}

TEST_F(Listener, ProgramsBeyondTheLimitAreToldSo) {
  Begin(1);
  const absl::StatusOr<WorkerSocket> first = ConnectToWorker(path());
  ASSERT_TRUE(first.ok() && Ask(*first).ok());
  const absl::StatusOr<WorkerSocket> second = ConnectToWorker(path());
  ASSERT_TRUE(second.ok());
  const absl::StatusOr<Message> refusal = second->Receive(kAnswerNs);
  ASSERT_TRUE(refusal.ok()) << refusal.status();
  EXPECT_EQ(StatusOf(*refusal, MessageKind::kWelcome).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Ask(*first).ok());
  End();
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(listener_->counts().served, 1U);
  EXPECT_EQ(listener_->counts().refused_beyond, 1U);
}

}  // namespace
}  // namespace strobe::internal
