#include "strobe/worker/serve/worker_recordings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strobe/testing/profiles.h"
#include "strobe/worker/shared/recording_messages.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kForEver = -1;

// Calls as a program makes them, of recordings that go on until they are cancelled.
class WorkerRecordingsTest : public ::testing::Test {
 protected:
  WorkerSocket Ask(const std::string& text) {
    absl::StatusOr<SocketPair> sockets = MakeSocketPair();
    Message message{.kind = MessageKind::kRecord, .text = text};
    message.descriptors[0] = dup(sockets->other.descriptor());
    recordings_.Begin(message, [this](const RecordingRequest& request) {
      while (!*request.options.cancelled) std::this_thread::yield();
      ++ended_;
      return absl::StatusOr<Profile>(testing::SmallProfile().profile);
    });
    return std::move(sockets->own);
  }
  void AwaitEnds(int count) {
    testing::WaitUntil([&] {
      recordings_.Update();
      return ended_ >= count;
    });
  }
  absl::Status AnswerAt(const WorkerSocket& socket) {
    const absl::StatusOr<Message> answer = socket.Receive(kForEver);
    if (!answer.ok()) return answer.status();
    if (answer->descriptors[0] >= 0) close(answer->descriptors[0]);
    return StatusOf(*answer, MessageKind::kRecorded);
  }

  const std::string good_ = JoinRecording({.options = {.duration = std::chrono::seconds(1)}});
  std::atomic<int> ended_{0};
  WorkerRecordings recordings_;
};

TEST_F(WorkerRecordingsTest, AMessageOrTheCallersEndCancels) {
  const WorkerSocket stays = Ask(good_);
  WorkerSocket goes = Ask(good_);
  goes = WorkerSocket();
  AwaitEnds(1);
  ASSERT_TRUE(stays.Send({.kind = MessageKind::kRecord}).ok());
  AwaitEnds(2);
  EXPECT_TRUE(AnswerAt(stays).ok());
}

TEST_F(WorkerRecordingsTest, HaveALimitAndRefuseWhatIsNoCall) {
  std::vector<WorkerSocket> sockets;
  for (std::size_t i = 0; i < kMaxRecordings; ++i) sockets.push_back(Ask(good_));
  EXPECT_EQ(AnswerAt(Ask(good_)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(AnswerAt(Ask("x")).code(), absl::StatusCode::kInvalidArgument);
  recordings_.Begin({.kind = MessageKind::kRecord, .text = good_}, nullptr);  // no connection
  sockets.clear();
  AwaitEnds(static_cast<int>(kMaxRecordings));
}

}  // namespace
}  // namespace strobe::internal
