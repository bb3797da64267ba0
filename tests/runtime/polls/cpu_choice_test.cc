#include "strobe/runtime/polls/cpu_choice.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "support/chance.h"

namespace strobe::internal {
namespace {

constexpr int kDraws = 20'000;

std::map<int, int> Draws(const CpuChoice& choice, std::map<int, double>& probabilities) {
  RandomSource random(7);
  std::map<int, int> counts;
  for (int i = 0; i < kDraws; ++i) {
    const CpuChoice::Draw draw = choice.Choose(random);
    ++counts[draw.cpu];
    probabilities[draw.cpu] = draw.probability;
  }
  return counts;
}

// What weighs a sample by the probability of its CPU rests on this.
void ExpectTrueProbabilities(const CpuChoice& choice, std::size_t cpus) {
  std::map<int, double> probabilities;
  const std::map<int, int> counts = Draws(choice, probabilities);
  EXPECT_EQ(counts.size(), cpus) << "none is left out";
  double sum = 0;
  for (const auto& [cpu, count] : counts) {
    testing::ExpectWithinChance(count, testing::BinomialBounds(kDraws, probabilities[cpu]),
                                "draws of CPU " + std::to_string(cpu));
    sum += probabilities[cpu];
  }
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(CpuChoice, NothingSeenIsLikeNothingPreferred) {
  CpuChoice choice;
  EXPECT_FALSE(choice.has_cpus());
  choice.SetCpus({0, 2, 5});
  EXPECT_TRUE(choice.has_cpus());
  EXPECT_DOUBLE_EQ(choice.HitProbability(), 1.0 / 3);
  ExpectTrueProbabilities(choice, 3);
}

TEST(CpuChoice, MostDrawsAreWhereThreadsHaveBeenSeen) {
  CpuChoice choice;
  choice.SetCpus({0, 1, 2, 3});
  for (int i = 0; i < 10; ++i) choice.Note(2, 1);
  ExpectTrueProbabilities(choice, 4);
  EXPECT_DOUBLE_EQ(choice.HitProbability(), 1 - CpuChoice::kBlindShare * 3 / 4);
}

// The older sights of a thread are forgotten, so one that has moved is found again.
TEST(CpuChoice, AThreadThatHasMovedIsSoughtWhereItIs) {
  CpuChoice choice;
  choice.SetCpus({0, 1});
  for (int i = 0; i < 100; ++i) choice.Note(0, 1);
  for (std::size_t i = 0; i < CpuChoice::kSightsPerThread; ++i) choice.Note(1, 1);
  std::map<int, double> probabilities;
  Draws(choice, probabilities);
  EXPECT_DOUBLE_EQ(probabilities[0], CpuChoice::kBlindShare / 2);
  ExpectTrueProbabilities(choice, 2);
}

TEST(CpuChoice, ManyThreadsAreSoughtOnAllOfTheirCpus) {
  CpuChoice choice;
  choice.SetCpus({0, 1, 2, 3, 4, 5, 6, 7});
  for (int i = 0; i < 1000; ++i) choice.Note(i % 8, 8);
  EXPECT_NEAR(choice.HitProbability(), 1.0 / 8, 1e-9);
  ExpectTrueProbabilities(choice, 8);
}

TEST(CpuChoice, ARefusedCpuIsDrawnNoMore) {
  CpuChoice choice;
  choice.SetCpus({0, 1, 2});
  choice.Note(1, 1);
  choice.Forget(1);
  ExpectTrueProbabilities(choice, 2);
  choice.Forget(0);
  choice.Forget(2);
  EXPECT_FALSE(choice.has_cpus());
}

TEST(CpuChoice, OtherCpusAreABeginAnew) {
  CpuChoice choice;
  choice.SetCpus({0, 1});
  for (int i = 0; i < 10; ++i) choice.Note(1, 1);
  choice.SetCpus({0, 1});
  EXPECT_GT(choice.HitProbability(), 0.5) << "the same as before";
  choice.SetCpus({0});
  EXPECT_DOUBLE_EQ(choice.HitProbability(), 1);
  ExpectTrueProbabilities(choice, 1);
}

TEST(CpuChoice, AThreadMayBeWhereTheProcessMayNot) {
  CpuChoice choice;
  choice.SetCpus({0});
  choice.Note(9, 1);
  choice.Note(kAnyCpu, 1);  // the system does not tell
  ExpectTrueProbabilities(choice, 2);
}

TEST(CpuChoice, OfTooManyCpusNoneIsDrawn) {
  CpuChoice choice;
  choice.SetCpus({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_TRUE(choice.has_cpus());
  choice.Note(8, 1);
  EXPECT_FALSE(choice.has_cpus());
  choice.Note(9, 1);
  choice.SetCpus({0, 1});
  EXPECT_TRUE(choice.has_cpus());
  choice.SetCpus({0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_FALSE(choice.has_cpus());
}

TEST(CpuChoice, FewerThreadsLeaveTheNewestSights) {
  CpuChoice choice;
  choice.SetCpus({0, 1});
  for (int i = 0; i < 100; ++i) choice.Note(0, 100);
  for (int i = 0; i < 4; ++i) choice.Note(1, 100);
  choice.Note(1, 1);
  std::map<int, double> probabilities;
  Draws(choice, probabilities);
  EXPECT_DOUBLE_EQ(probabilities[0], CpuChoice::kBlindShare / 2);
}

TEST(CpuChoice, TheNumberOfSightsIsBounded) {
  CpuChoice choice;
  choice.SetCpus({0, 1});
  for (std::size_t i = 0; i < 2 * CpuChoice::kMaxSights; ++i) choice.Note(0, 1'000'000'000);
  for (std::size_t i = 0; i < CpuChoice::kMaxSights; ++i) choice.Note(1, 1'000'000'000);
  std::map<int, double> probabilities;
  Draws(choice, probabilities);
  EXPECT_DOUBLE_EQ(probabilities[0], CpuChoice::kBlindShare / 2) << "the older half is forgotten";
}

}  // namespace
}  // namespace strobe::internal
