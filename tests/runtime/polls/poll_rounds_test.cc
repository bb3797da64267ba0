#include "strobe/runtime/polls/poll_rounds.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "../as_collector.h"
#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/platform/capture_target.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::kMs;
using testing::ManualPlatform;

struct NumberedThread {
  std::uint32_t number = 0;
  [[nodiscard]] std::uint32_t index() const { return number; }
};

class PollRoundsTest : public testing::AsCollector {
 protected:
  struct Visit {
    std::uint32_t index = 0;
    std::int64_t known_cpu_ns = 0;
  };

  // A round over all threads, of which each poll costs the collector so much. Thread n has
  // the number n + 10.
  std::vector<Visit> VisitsOfRound(std::int64_t poll_cpu_ns) {
    std::vector<Visit> visits;
    rounds_.RunAll(
        scratch_,
        [&](std::vector<NumberedThread*>& threads) {
          threads = {&threads_[0], &threads_[1], &threads_[2]};
        },
        [&](NumberedThread& thread, std::int64_t known_cpu_ns) {
          ManualPlatform::RunFor(kCollector, poll_cpu_ns);
          visits.push_back({thread.index(), known_cpu_ns});
          if (known_cpu_ns < 0)
            rounds_.Note(thread.index(), 0, ManualPlatform::ThreadCpuTimeNs(thread.index() + 10));
        });
    return visits;
  }
  std::vector<std::uint32_t> Round(std::int64_t poll_cpu_ns) {
    std::vector<std::uint32_t> seen;
    for (const Visit& visit : VisitsOfRound(poll_cpu_ns)) seen.push_back(visit.index);
    return seen;
  }
  // The mean time to the next round over many plans.
  double MeanPlanNs(std::int64_t mean_ns) {
    constexpr int kPlans = 20'000;
    double sum_ns = 0;
    for (int i = 0; i < kPlans; ++i) {
      rounds_.Plan(0, mean_ns, random_);
      EXPECT_GT(rounds_.due_ns(), 0);
      sum_ns += static_cast<double>(rounds_.due_ns());
    }
    return sum_ns / kPlans;
  }

  PollRounds<ManualPlatform> rounds_;
  RandomSource random_{1};
  NumberedThread threads_[3] = {{0}, {1}, {2}};
  std::vector<NumberedThread*> scratch_;
};

TEST_F(PollRoundsTest, ComeWhenTheyAreWanted) {
  EXPECT_FALSE(rounds_.IsDue(0));
  EXPECT_TRUE(rounds_.IsOpen(0));
  EXPECT_TRUE(rounds_.Plan(0, 0, random_));
  EXPECT_EQ(rounds_.due_ns(), INT64_MAX);
  EXPECT_TRUE(rounds_.Plan(5, 10 * kMs, random_));
  EXPECT_GT(rounds_.due_ns(), 5);
  EXPECT_FALSE(rounds_.IsOpen(rounds_.due_ns() - 1));
  EXPECT_TRUE(rounds_.IsDue(rounds_.due_ns()));
}

TEST_F(PollRoundsTest, ComeAtInstantsWithoutAMemory) {
  EXPECT_NEAR(MeanPlanNs(10 * kMs), 10 * kMs, 0.03 * 10 * kMs);
  // Of those that take longer than the mean, so many take longer than twice the mean.
  int longer = 0;
  int twice = 0;
  for (int i = 0; i < 20'000; ++i) {
    rounds_.Plan(0, 10 * kMs, random_);
    longer += rounds_.due_ns() > 10 * kMs ? 1 : 0;
    twice += rounds_.due_ns() > 20 * kMs ? 1 : 0;
  }
  EXPECT_NEAR(longer / 20'000.0, std::exp(-1), 0.02);
  EXPECT_NEAR(static_cast<double>(twice) / longer, std::exp(-1), 0.02);
}

TEST_F(PollRoundsTest, NobodyIsAlwaysTheFirst) {
  EXPECT_THAT(Round(0), ElementsAre(1, 2, 0));
  EXPECT_THAT(Round(0), ElementsAre(2, 0, 1));
  EXPECT_THAT(Round(0), ElementsAre(0, 1, 2));
}

TEST_F(PollRoundsTest, TakeAHundredthOfACore) {
  Round(kMs / 30);  // 0.1 ms for the three
  EXPECT_TRUE(rounds_.Plan(0, 10 * kMs, random_));
  for (std::size_t i = 0; i < kPollCostRounds; ++i) Round(kMs);
  EXPECT_FALSE(rounds_.Plan(0, 10 * kMs, random_));
  EXPECT_NEAR(MeanPlanNs(10 * kMs), 300 * kMs, 0.03 * 300 * kMs);
  EXPECT_TRUE(rounds_.Plan(0, 500 * kMs, random_)) << "so rarely they cost little";
  EXPECT_NEAR(MeanPlanNs(500 * kMs), 500 * kMs, 0.03 * 500 * kMs);
}

// The first asks for stacks, and builds the tables for them.
TEST_F(PollRoundsTest, AFewDearOnesPutNoneOff) {
  for (const std::int64_t cost_ns : {100 * kMs, 50 * kMs, kMs / 100, kMs / 100, kMs / 100}) {
    Round(cost_ns);
    EXPECT_TRUE(rounds_.Plan(0, 10 * kMs, random_));
  }
}

TEST_F(PollRoundsTest, AreNotPutOffForEver) {
  for (std::size_t i = 0; i < kPollCostRounds; ++i) Round(1000 * kMs);
  EXPECT_FALSE(rounds_.Plan(0, 10 * kMs, random_));
  EXPECT_NEAR(MeanPlanNs(10 * kMs), kMaxPollDelayNs, 0.03 * kMaxPollDelayNs);
}

TEST_F(PollRoundsTest, AThreadThatStaysIdleNeedsNoClock) {
  ManualPlatform::RunFor(10, 100);
  ManualPlatform::RunFor(11, 110);
  ManualPlatform::RunFor(12, 120);
  // After the first round their clocks stand still.
  for (int i = 0; i <= IdleThreads<ManualPlatform>::kStillPolls; ++i) {
    for (const Visit& visit : VisitsOfRound(0)) EXPECT_EQ(visit.known_cpu_ns, -1);
  }
  VisitsOfRound(0);  // of the process's clock, all but the collector's is unexplained so far
  int unknown = 0;
  constexpr int kRounds = 16 * kIdleTurns;
  for (int i = 0; i < kRounds; ++i) {
    for (const Visit& visit : VisitsOfRound(0)) {
      unknown += visit.known_cpu_ns < 0 ? 1 : 0;
      if (visit.known_cpu_ns >= 0) {
        EXPECT_EQ(visit.known_cpu_ns, 100 + 10 * visit.index);
      }
    }
  }
  EXPECT_EQ(unknown, 3 * kRounds / static_cast<int>(kIdleTurns)) << "each in its turn";
  ManualPlatform::RunFor(11, kMostUnseenNs + 1);
  for (const Visit& visit : VisitsOfRound(0)) EXPECT_EQ(visit.known_cpu_ns, -1) << "which one ran?";
  rounds_.Forget(2);
  for (const Visit& visit : VisitsOfRound(0)) {
    if (visit.index == 2) {
      EXPECT_EQ(visit.known_cpu_ns, -1) << "the thread has another thread";
    }
  }
}

}  // namespace
}  // namespace strobe::internal
