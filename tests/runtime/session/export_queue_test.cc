#include "strobe/runtime/session/export_queue.h"

#include <array>
#include <cstddef>
#include <cstdint>
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
