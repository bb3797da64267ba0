#include "strobe/runtime/polls/collector_cpu.h"

#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/archetypes.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;

class CollectorCpuTest : public ::testing::Test {
 protected:
  CollectorCpuTest() { ManualPlatform::Reset(); }
  static void UseCpus(const std::vector<int>& cpus) {
    ManualPlatform::With([&](auto& state) { state.cpus = cpus; });
  }
  static int OwnCpu() {
    return ManualPlatform::With([](auto& state) { return state.own_cpu; });
  }
  std::set<int> Seen(int times) {
    std::set<int> seen;
    for (int i = 0; i < times; ++i) {
      Go();
      EXPECT_EQ(OwnCpu(), cpu_.cpu());
      seen.insert(cpu_.cpu());
    }
    return seen;
  }

  void Go() { cpu_.Go(random_, now_ns_); }

  CollectorCpu<ManualPlatform> cpu_;
  RandomSource random_{1};
  std::int64_t now_ns_ = 1'000'000'000;
};

TEST_F(CollectorCpuTest, GoesToAnyOfTheCpusAndLeavesThem) {
  UseCpus({3, 5});
  EXPECT_EQ(Seen(100), (std::set<int>{3, 5}));
  EXPECT_DOUBLE_EQ(cpu_.probability(), 0.5);
  EXPECT_DOUBLE_EQ(cpu_.HitProbability(), 0.5);
  cpu_.Leave();
  EXPECT_EQ(OwnCpu(), kAnyCpu);
  EXPECT_EQ(cpu_.cpu(), kAnyCpu);
  EXPECT_DOUBLE_EQ(cpu_.probability(), 1);
  EXPECT_DOUBLE_EQ(cpu_.HitProbability(), 1);
}

TEST_F(CollectorCpuTest, AnInstantMustComeInTimeAndOnItsCpu) {
  UseCpus({3, 5});
  Go();
  EXPECT_TRUE(cpu_.IsInTime(0));
  EXPECT_TRUE(cpu_.IsInTime(kMostLateNs));
  EXPECT_FALSE(cpu_.IsInTime(kMostLateNs + 1));
  ManualPlatform::With([](auto& state) { state.is_saturated = true; });
  EXPECT_TRUE(cpu_.IsInTime(kPromptNs));
  EXPECT_FALSE(cpu_.IsInTime(kPromptNs + 1)) << "another thread may have had the CPU";
  ManualPlatform::With([&](auto& state) { state.own_cpu = 8 - cpu_.cpu(); });
  EXPECT_FALSE(cpu_.IsInTime(0)) << "it has been moved";
  cpu_.Leave();
  EXPECT_TRUE(cpu_.IsInTime(2 * kMostLateNs)) << "it samples all CPUs";
}

TEST_F(CollectorCpuTest, GoesMostOftenWhereThreadsAre) {
  UseCpus({0, 1, 2, 3});
  EXPECT_FALSE(cpu_.is_choosing());
  Go();
  EXPECT_TRUE(cpu_.is_choosing());
  for (int i = 0; i < 10; ++i) cpu_.Note(2, 1);
  EXPECT_GT(cpu_.HitProbability(), 0.5);
  EXPECT_EQ(Seen(200).size(), 4u);
}

TEST_F(CollectorCpuTest, ChangesOfTheCpusAreSeen) {
  UseCpus({0, 1});
  EXPECT_EQ(Seen(100).size(), 2u);
  UseCpus({1, 2});
  Seen(100);
  EXPECT_EQ(Seen(100), std::set<int>{1}) << "what the system refuses is forgotten";
  cpu_.LookAtCpus();
  EXPECT_EQ(Seen(100), (std::set<int>{1, 2}));
}

// It would wait there, with all its work, for as long as that one likes.
TEST_F(CollectorCpuTest, RestsAfterACpuThatSomebodyKeeps) {
  UseCpus({0, 1});
  Go();
  EXPECT_FALSE(cpu_.IsInTime(kStarvedNs + 1));
  EXPECT_EQ(Seen(10), std::set<int>{kAnyCpu});
  now_ns_ += kRestNs;
  EXPECT_EQ(Seen(100), (std::set<int>{0, 1}));
}

TEST_F(CollectorCpuTest, StaysNowhereWhereItDoesNotWakeInTime) {
  UseCpus({});
  EXPECT_EQ(Seen(10), std::set<int>{kAnyCpu});
  UseCpus({0, 1});
  cpu_.LookAtCpus();
  EXPECT_EQ(Seen(10), std::set<int>{kAnyCpu});
}

TEST(CollectorCpu, APlatformNeedNotBeAbleToDoThis) {
  CollectorCpu<testing::ArchetypePlatform> cpu;
  RandomSource random(1);
  cpu.Go(random, 0);
  cpu.LookAtCpus();
  cpu.Note(1, 1);
  cpu.Leave();
  EXPECT_EQ(cpu.cpu(), kAnyCpu);
  EXPECT_TRUE(cpu.IsInTime(2 * kMostLateNs));
}

}  // namespace
}  // namespace strobe::internal
