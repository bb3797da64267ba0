#include "strobe/runtime/export_queue.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "export_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

constexpr std::array<std::string_view, 2> kSuffixes{".txt", ".pb.gz"};

class ExportQueueTest : public ::testing::Test {
 protected:
  // The periods that wait.
  std::vector<std::uint64_t> Sequences() {
    std::vector<std::uint64_t> sequences;
    for (std::size_t i = 0; i < queue_.size(); ++i)
      sequences.push_back(queue_.At(i).profile.sequence);
    return sequences;
  }

  ExportQueue queue_{kSuffixes};
};

TEST_F(ExportQueueTest, AJobLeavesOnceEachOutputHasDeliveredIt) {
  queue_.Push(Job(1));
  queue_.Push(Job(2));
  ExportJob& job = queue_.At(0);
  queue_.Settle(job, 0, "/there");
  EXPECT_FALSE(queue_.RemoveIfSettled(0));
  EXPECT_EQ(job.waiting.to_ulong(), 2u) << "the second output";
  queue_.Settle(job, 1, "/elsewhere");
  EXPECT_TRUE(queue_.RemoveIfSettled(0));
  EXPECT_THAT(Sequences(), ElementsAre(2));
  EXPECT_EQ(queue_.accounts()[0].exports, 1u);
  EXPECT_EQ(queue_.accounts()[1].last_export_path, "/elsewhere");
}

TEST_F(ExportQueueTest, AFailureWaitsAndARefusalIsDroppedWithItsAmount) {
  queue_.Push(Job(1));
  queue_.Settle(queue_.At(0), 0, absl::UnavailableError("503"));
  queue_.Settle(queue_.At(0), 1, absl::OutOfRangeError("413"));
  EXPECT_EQ(queue_.At(0).waiting.to_ulong(), 1u) << "the first output";
  EXPECT_EQ(queue_.accounts()[0].exports_failed, 1u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 0u);
  EXPECT_EQ(queue_.accounts()[1].exports_failed, 1u);
  EXPECT_EQ(queue_.accounts()[1].exports_dropped, 1u);
  EXPECT_EQ(queue_.accounts()[1].amount_dropped, 20) << "of the default value type";
}

TEST_F(ExportQueueTest, ThereIsRoomWhileAnOutputIsFree) {
  EXPECT_TRUE(queue_.HasRoom());
  queue_.Push(Job(1));
  EXPECT_FALSE(queue_.HasRoom());
  queue_.Settle(queue_.At(0), 1, "/there");
  EXPECT_TRUE(queue_.HasRoom()) << "the second output waits for the next period";
}

TEST_F(ExportQueueTest, TheOldestAreDroppedForAnOutputThatTooManyWaitFor) {
  for (std::uint64_t i = 1; i <= kMaxWaitingProfiles + 2; ++i) {
    ASSERT_TRUE(queue_.HasRoom());
    queue_.Push(Job(i));
    queue_.Settle(queue_.At(queue_.size() - 1), 1, "/there");
  }
  queue_.DropBeyondLimit();
  EXPECT_EQ(queue_.size(), kMaxWaitingProfiles);
  EXPECT_EQ(queue_.At(0).profile.sequence, 3u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 2u);
  EXPECT_EQ(queue_.accounts()[0].amount_dropped, 40);
  EXPECT_EQ(queue_.accounts()[1].exports_dropped, 0u);
}

TEST_F(ExportQueueTest, AtTheEndWhatWaitsIsDroppedAndItsAmountIsCountedFilledOrNot) {
  queue_.Push(Job(1));
  queue_.Settle(queue_.At(0), 0, "/there");
  queue_.Push(Job(2));
  FillProfile(queue_.At(1));
  queue_.DropAll();
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.accounts()[0].exports_dropped, 1u);
  EXPECT_EQ(queue_.accounts()[0].amount_dropped, 20);
  EXPECT_EQ(queue_.accounts()[1].exports_dropped, 2u);
  EXPECT_EQ(queue_.accounts()[1].amount_dropped, 40);
}

}  // namespace
}  // namespace strobe::internal
