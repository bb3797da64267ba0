#include "strobe/runtime/poll_rounds.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/platform/capture_target.h"
#include "strobe/testing/manual_platform.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::ManualPlatform;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kCollector = 1;

struct NumberedSlot {
  SlotToken own;
  const SlotToken* token = &own;
};

class PollRoundsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualPlatform::ActAs(kCollector);
  }
  void TearDown() override { ManualPlatform::ActAs(0); }

  // A round over all threads, of which each poll costs the collector so much; which it polled.
  std::vector<std::uint32_t> Round(std::int64_t poll_cpu_ns) {
    std::vector<std::uint32_t> seen;
    rounds_.RunAll(
        scratch_,
        [&](std::vector<NumberedSlot*>& slots) {
          slots = {&slots_[0], &slots_[1], &slots_[2]};
        },
        [&](NumberedSlot& slot) {
          ManualPlatform::RunFor(kCollector, poll_cpu_ns);
          seen.push_back(slot.token->index);
        });
    return seen;
  }

  PollRounds<ManualPlatform> rounds_;
  NumberedSlot slots_[3] = {{.own = {.index = 0}}, {.own = {.index = 1}}, {.own = {.index = 2}}};
  std::vector<NumberedSlot*> scratch_;
};

TEST_F(PollRoundsTest, ComeWhenTheyAreWanted) {
  EXPECT_FALSE(rounds_.IsDue(0));
  EXPECT_TRUE(rounds_.IsOpen(0));
  EXPECT_TRUE(rounds_.Plan(0, 0));
  EXPECT_EQ(rounds_.due_ns(), INT64_MAX);
  EXPECT_TRUE(rounds_.Plan(0, 10 * kMs));
  EXPECT_EQ(rounds_.due_ns(), 10 * kMs);
  EXPECT_FALSE(rounds_.IsOpen(9 * kMs));
  EXPECT_TRUE(rounds_.IsDue(10 * kMs));
}

TEST_F(PollRoundsTest, NobodyIsAlwaysTheFirst) {
  EXPECT_THAT(Round(0), ElementsAre(1, 2, 0));
  EXPECT_THAT(Round(0), ElementsAre(2, 0, 1));
  EXPECT_THAT(Round(0), ElementsAre(0, 1, 2));
}

TEST_F(PollRoundsTest, TakeAHundredthOfACore) {
  Round(kMs / 30);  // 0.1 ms for the three
  EXPECT_TRUE(rounds_.Plan(0, 10 * kMs));
  EXPECT_EQ(rounds_.due_ns(), 10 * kMs);
  std::int64_t now_ns = 0;
  for (std::size_t i = 0; i < kPollCostRounds; ++i) Round(kMs);
  const std::int64_t before_ns = ManualPlatform::ThreadCpuTimeNs(kCollector);
  for (int i = 0; i < 50; ++i) {
    Round(kMs);
    EXPECT_FALSE(rounds_.Plan(now_ns, 10 * kMs));
    now_ns = rounds_.due_ns();
  }
  const std::int64_t cost_ns = ManualPlatform::ThreadCpuTimeNs(kCollector) - before_ns;
  EXPECT_NEAR(static_cast<double>(cost_ns) / static_cast<double>(now_ns), 0.01, 0.003);
  EXPECT_TRUE(rounds_.Plan(now_ns, 500 * kMs)) << "so rarely they cost little";
}

// The first asks for stacks, and builds the tables for them.
TEST_F(PollRoundsTest, AFewDearOnesPutNoneOff) {
  for (const std::int64_t cost_ns : {100 * kMs, 50 * kMs, kMs / 100, kMs / 100, kMs / 100}) {
    Round(cost_ns);
    EXPECT_TRUE(rounds_.Plan(0, 10 * kMs));
  }
}

TEST_F(PollRoundsTest, AreNotPutOffForEver) {
  for (std::size_t i = 0; i < kPollCostRounds; ++i) Round(1000 * kMs);
  EXPECT_FALSE(rounds_.Plan(0, 10 * kMs));
  EXPECT_EQ(rounds_.due_ns(), kMaxPollDelayNs);
}

}  // namespace
}  // namespace strobe::internal
