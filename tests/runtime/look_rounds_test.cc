#include "strobe/runtime/look_rounds.h"

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

class LookRoundsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualPlatform::ActAs(kCollector);
  }
  void TearDown() override { ManualPlatform::ActAs(0); }

  // A round of looks at all, each of which costs the collector so much; whom it looked at.
  std::vector<std::uint32_t> Round(std::int64_t look_cpu_ns) {
    std::vector<std::uint32_t> seen;
    rounds_.RunAll(
        scratch_,
        [&](std::vector<NumberedSlot*>& slots) {
          slots = {&slots_[0], &slots_[1], &slots_[2]};
        },
        [&](NumberedSlot& slot) {
          ManualPlatform::RunFor(kCollector, look_cpu_ns);
          seen.push_back(slot.token->index);
        });
    return seen;
  }

  LookRounds<ManualPlatform> rounds_;
  NumberedSlot slots_[3] = {{.own = {.index = 0}}, {.own = {.index = 1}}, {.own = {.index = 2}}};
  std::vector<NumberedSlot*> scratch_;
};

TEST_F(LookRoundsTest, ComeWhenTheyAreWanted) {
  EXPECT_FALSE(rounds_.IsDue(0));
  EXPECT_TRUE(rounds_.IsOpen(0));
  EXPECT_TRUE(rounds_.Plan(0, 0));
  EXPECT_EQ(rounds_.due_ns(), INT64_MAX);
  EXPECT_TRUE(rounds_.Plan(0, 10 * kMs));
  EXPECT_EQ(rounds_.due_ns(), 10 * kMs);
  EXPECT_FALSE(rounds_.IsOpen(9 * kMs));
  EXPECT_TRUE(rounds_.IsDue(10 * kMs));
}

TEST_F(LookRoundsTest, NobodyIsAlwaysTheFirst) {
  EXPECT_THAT(Round(0), ElementsAre(1, 2, 0));
  EXPECT_THAT(Round(0), ElementsAre(2, 0, 1));
  EXPECT_THAT(Round(0), ElementsAre(0, 1, 2));
}

TEST_F(LookRoundsTest, TakeAHundredthOfACore) {
  Round(kMs / 30);  // 0.1 ms for the three
  EXPECT_TRUE(rounds_.Plan(0, 10 * kMs));
  EXPECT_EQ(rounds_.due_ns(), 10 * kMs);
  std::int64_t now_ns = 0;
  for (std::size_t i = 0; i < kLookCostRounds; ++i) Round(kMs);
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
TEST_F(LookRoundsTest, AFewDearOnesPutNoneOff) {
  for (const std::int64_t cost_ns : {100 * kMs, 50 * kMs, kMs / 100, kMs / 100, kMs / 100}) {
    Round(cost_ns);
    EXPECT_TRUE(rounds_.Plan(0, 10 * kMs));
  }
}

TEST_F(LookRoundsTest, AreNotPutOffForEver) {
  for (std::size_t i = 0; i < kLookCostRounds; ++i) Round(1000 * kMs);
  EXPECT_FALSE(rounds_.Plan(0, 10 * kMs));
  EXPECT_EQ(rounds_.due_ns(), kMaxLookDelayNs);
}

}  // namespace
}  // namespace strobe::internal
