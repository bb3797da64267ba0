#include "../../../src/http/pull/linux/pull_workers.h"

#include <atomic>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/http/pull_server.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

// A recording lasts until it is cancelled.
class PullWorkersTest : public ::testing::Test {
 protected:
  PullSource Source() {
    return {.record = [this](const RecordingOptions& wanted) -> absl::StatusOr<Profile> {
              ++recordings_;
              while (!wanted.cancelled->load()) std::this_thread::yield();
              return absl::CancelledError("cancelled");
            },
            .symbolize = [](const Profile&) -> absl::StatusOr<Symbols> { return Symbols(); },
            .stats = [] { return Stats(); }};
  }
  std::vector<PullWorkers::Answer> AwaitAnswers() {
    std::vector<PullWorkers::Answer> answers;
    testing::WaitUntil([&] { return !(answers = workers_.TakeAnswers()).empty(); });
    return answers;
  }

  std::atomic<int> recordings_{0};
  std::atomic<int> wakes_{0};
  PullHandler handler_{Source(), {MakePullFormat<FoldedEncoder>("folded")}, {}, "program"};
  PullWorkers workers_{handler_, [this] { ++wakes_; }};
};

TEST_F(PullWorkersTest, AnAnswerHasTheNumberOfItsConnection) {
  ASSERT_TRUE(workers_.Start().ok());
  workers_.Ask(7, {.path = "/debug/pprof/cmdline"});
  const std::vector<PullWorkers::Answer> answers = AwaitAnswers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].connection, 7U);
  EXPECT_EQ(answers[0].response.body, "program");
  workers_.Stop();
  EXPECT_EQ(wakes_, 1);
}

TEST_F(PullWorkersTest, RecordingsDoNotKeepOthersWaiting) {
  ASSERT_TRUE(workers_.Start().ok());
  for (std::uint64_t i = 0; i < kMaxRecordings; ++i)
    workers_.Ask(i, {.path = "/debug/pprof/profile"});
  testing::WaitUntil([&] { return recordings_ == static_cast<int>(kMaxRecordings); });
  workers_.Ask(99, {.path = "/metrics"});
  EXPECT_EQ(AwaitAnswers().at(0).connection, 99U);
  handler_.Cancel();
  workers_.Stop();
  EXPECT_EQ(workers_.TakeAnswers().size(), kMaxRecordings) << "each is told";
}

TEST_F(PullWorkersTest, WhatWaitsAtTheEndHasNoAnswer) {
  ASSERT_TRUE(workers_.Start().ok());
  workers_.Stop();
  workers_.Ask(1, {.path = "/metrics"});
  EXPECT_TRUE(workers_.TakeAnswers().empty());
}

}  // namespace
}  // namespace strobe::internal
