#include "strobe/runtime/session/export_queue.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../export_jobs.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

constexpr std::array<std::string_view, 2> kSuffixes{".txt", ".pb.gz"};

class ExportQueueTest : public ::testing::Test {
 protected:
  // The periods that wait for an output.
  std::vector<std::uint64_t> Waiting(std::size_t output) {
    std::vector<std::uint64_t> sequences;
    std::uint64_t last = 0;
    while (ExportJob* const job = queue_.Take(output, last)) {
      last = job->number;
      job->in_use.reset(output);
      sequences.push_back(job->profile.sequence);
    }
    return sequences;
  }
  // Settles the oldest period after job `after` that waits for the output.
  bool Settle(std::size_t output, absl::StatusOr<std::string> sent, std::uint64_t after = 0) {
    return queue_.Settle(*queue_.Take(output, after), output, std::move(sent));
  }

  ExportQueue queue_{kSuffixes};
};

TEST_F(ExportQueueTest, AJobLeavesOnceEachOutputHasDeliveredIt) {
  queue_.Push(Job(1));
  queue_.Push(Job(2));
  EXPECT_FALSE(Settle(0, "/there"));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_THAT(Waiting(0), ElementsAre(2));
  EXPECT_THAT(Waiting(1), ElementsAre(1, 2));
  EXPECT_TRUE(queue_.HasNewer(1, 1));
  EXPECT_FALSE(queue_.HasNewer(1, 2));
  EXPECT_FALSE(Settle(1, "/elsewhere"));
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_THAT(Waiting(1), ElementsAre(2));
  EXPECT_EQ(queue_.accounts()[0].exports, 1u);
  EXPECT_EQ(queue_.accounts()[1].last_export_path, "/elsewhere");
}

TEST_F(ExportQueueTest, AFailureWaitsAndARefusalIsDroppedWithItsAmount) {
  queue_.Push(Job(1));
  EXPECT_TRUE(Settle(0, absl::UnavailableError("503"))) << "a later try may succeed";
  EXPECT_FALSE(Settle(1, absl::OutOfRangeError("413")));
  EXPECT_THAT(Waiting(0), ElementsAre(1));
  EXPECT_THAT(Waiting(1), ElementsAre());
  EXPECT_EQ(queue_.accounts()[0].exports_failed, 1u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 0u);
  EXPECT_EQ(queue_.accounts()[1].exports_failed, 1u);
  EXPECT_EQ(queue_.accounts()[1].exports_dropped, 1u);
  EXPECT_EQ(queue_.accounts()[1].drops[static_cast<std::size_t>(ExportDrop::kRefused)], 1u);
  EXPECT_EQ(queue_.accounts()[1].amount_dropped, 20) << "of the default value type";
}

TEST_F(ExportQueueTest, ThereIsRoomWhileAnOutputIsFree) {
  EXPECT_TRUE(queue_.HasRoom());
  queue_.Push(Job(1));
  EXPECT_FALSE(queue_.HasRoom());
  Settle(1, "/there");
  EXPECT_TRUE(queue_.HasRoom()) << "the second output waits for the next period";
}

TEST_F(ExportQueueTest, TheOldestAreDroppedForAnOutputThatTooManyWaitFor) {
  for (std::uint64_t i = 1; i <= kMaxWaitingProfiles + 2; ++i) {
    ASSERT_TRUE(queue_.HasRoom());
    queue_.Push(Job(i));
    Settle(1, "/there");
  }
  EXPECT_EQ(queue_.size(), kMaxWaitingProfiles);
  EXPECT_EQ(Waiting(0).front(), 3u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 2u);
  EXPECT_EQ(queue_.accounts()[0].drops[static_cast<std::size_t>(ExportDrop::kTooManyWaiting)], 2u);
  EXPECT_EQ(queue_.accounts()[0].amount_dropped, 40);
  EXPECT_EQ(queue_.accounts()[1].exports_dropped, 0u);
}

TEST_F(ExportQueueTest, AWindowIsTriedOnceBeforeThePeriodsAndLeavesTheirRoom) {
  queue_.Push(Job(1));
  Settle(1, "/there");
  std::unique_ptr<ExportJob> window = WindowJob(100);
  const std::shared_ptr<WindowOutcome> outcome = window->outcome;
  queue_.Push(std::move(window));
  EXPECT_TRUE(queue_.HasRoom()) << "for a period";
  ExportJob* const taken = queue_.Take(0, 1);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->profile.sequence, 100u);
  EXPECT_FALSE(queue_.Settle(*taken, 0, absl::UnavailableError("503"))) << "no later try";
  EXPECT_FALSE(outcome->is_settled) << "the second output has not tried it";
  EXPECT_FALSE(Settle(1, "/elsewhere"));
  EXPECT_TRUE(outcome->is_settled);
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(outcome->status.message(), queue_.accounts()[0].name + ": 503");
  EXPECT_THAT(Waiting(0), ElementsAre(1));
  EXPECT_EQ(queue_.windows_failed(), 1u);
  EXPECT_EQ(queue_.windows_written(), 0u);
  EXPECT_EQ(queue_.accounts()[0].exports_failed, 1u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 0u) << "the periods have its samples";
  EXPECT_EQ(queue_.accounts()[0].amount_dropped, 0);
}

TEST_F(ExportQueueTest, AWindowDisplacesNoPeriodAndAWaitingWindowDoesNotEither) {
  queue_.Push(WindowJob(100), 1);
  for (std::uint64_t i = 1; i <= kMaxWaitingProfiles; ++i) {
    ASSERT_TRUE(queue_.HasRoom());
    queue_.Push(Job(i));
    Settle(1, "/there");
  }
  queue_.Push(WindowJob(101), 1);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 0u);
  EXPECT_FALSE(Settle(0, "/there"));
  EXPECT_FALSE(Settle(0, "/there"));
  EXPECT_EQ(queue_.windows_written(), 2u);
  EXPECT_EQ(queue_.accounts()[0].exports, 2u);
  EXPECT_THAT(Waiting(0), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(ExportQueueTest, WindowsHaveALimitAndNoneWaitsBeyondTheEnd) {
  std::vector<std::shared_ptr<WindowOutcome>> outcomes;
  for (std::size_t i = 0; i < kMaxWaitingWindows; ++i) {
    EXPECT_TRUE(queue_.HasRoomForWindow());
    std::unique_ptr<ExportJob> window = WindowJob(i);
    outcomes.push_back(window->outcome);
    queue_.Push(std::move(window), 1);
  }
  EXPECT_FALSE(queue_.HasRoomForWindow());
  EXPECT_TRUE(queue_.HasRoom());
  queue_.DropAll(0);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.windows_failed(), kMaxWaitingWindows);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 0u);
  for (const auto& outcome : outcomes)
    EXPECT_TRUE(outcome->is_settled && absl::IsFailedPrecondition(outcome->status));
}

TEST_F(ExportQueueTest, WhatAnOutputSendsNowIsNotDropped) {
  queue_.Push(Job(0));
  ExportJob* const sent = queue_.Take(0, 0);
  Settle(1, "/there");
  for (std::uint64_t i = 1; i <= kMaxWaitingProfiles; ++i) {
    queue_.Push(Job(i));
    Settle(1, "/there");
  }
  EXPECT_EQ(sent->profile.sequence, 0u) << "still there";
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 1u) << "the next oldest";
  EXPECT_FALSE(queue_.Settle(*sent, 0, "/there"));
  EXPECT_EQ(Waiting(0).front(), 2u);
}

TEST_F(ExportQueueTest, AtTheEndWhatWaitsIsDroppedAndItsAmountIsCountedFilledOrNot) {
  queue_.Push(Job(1));
  Settle(0, "/there");
  queue_.Push(Job(2));
  ExportJob* const second = queue_.Take(0, 0);
  FillProfile(*second);
  EXPECT_TRUE(queue_.Settle(*second, 0, absl::UnavailableError("503")));
  queue_.DropAll(0);
  EXPECT_EQ(queue_.size(), 2u) << "the second output has not ended";
  queue_.DropAll(1);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 1u);
  EXPECT_EQ(queue_.accounts()[0].amount_dropped, 20);
  EXPECT_EQ(queue_.accounts()[1].exports_dropped, 2u);
  EXPECT_EQ(queue_.accounts()[1].amount_dropped, 40);
}

}  // namespace
}  // namespace strobe::internal
