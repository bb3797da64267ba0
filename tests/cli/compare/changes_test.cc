#include "../../../src/cli/compare/changes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "support/chance.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kFunctions = 30;
constexpr double kSampleNs = 2e6;

// What a program does in an iteration, and how its runs differ.
struct MadeProgram {
  double samples = 1000;     // of a run, in the mean
  double iterations = 1000;  // of a run
  double slowdown = 1;       // of the largest function
  double run_spread = 0;     // standard deviation of the logarithm of a run's speed
  std::size_t cluster = 1;   // samples that have the same stack, one after another

  // The means of functions fall from a third to a hundredth of a percent.
  [[nodiscard]] static double ShareOf(std::size_t function) {
    return std::pow(0.7, static_cast<double>(function)) * 0.3;
  }
};

// Knuth's method for small means, and the normal distribution's rounded values for large ones: the
// numbers of the standard library's distributions differ from one library to another.
class MadeRuns {
 public:
  explicit MadeRuns(std::uint64_t seed) : random_(seed) {}

  Side Run(const MadeProgram& program) {
    Side side{.units = program.iterations};
    const double speed = std::exp(program.run_spread * Normal());
    double samples = 0;
    for (std::size_t i = 0; i < kFunctions; ++i) {
      const double slowdown = i == 0 ? program.slowdown : 1;
      const double mean = program.samples * program.ShareOf(i) * slowdown * speed;
      const auto cluster = static_cast<double>(program.cluster);
      const double count = Poisson(mean / cluster) * cluster;
      if (count == 0) continue;
      const auto amount = static_cast<std::int64_t>(count * kSampleNs);
      side.functions["function " + std::to_string(i)] = {.self = amount, .total = amount};
      side.sum += amount;
      samples += count;
    }
    side.whole = side.sum;
    side.samples.AddThread(static_cast<double>(side.sum), samples);
    return side;
  }

 private:
  double Uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
  }
  double Poisson(double mean) {
    double count = 0;
    // In parts, so that the exponential does not vanish.
    for (double left = mean; left > 0; left -= 500) {
      const double limit = std::exp(-std::min(left, 500.0));
      for (double product = Uniform(); product > limit; product *= Uniform()) ++count;
    }
    return count;
  }

  std::mt19937_64 random_;
};

Side SumOf(const std::vector<Side>& runs) {
  Side sum{.units = 0};
  double samples = 0;
  for (const Side& run : runs) {
    for (const auto& [name, cost] : run.functions) {
      sum.functions[name].self += cost.self;
      sum.functions[name].total += cost.total;
    }
    sum.sum += run.sum;
    sum.units += run.units;
    samples += run.samples.taken();
  }
  sum.whole = sum.sum;
  sum.samples.AddThread(static_cast<double>(sum.sum), samples);
  return sum;
}

// True if any change is significant at `level`, of the total or of a function. Each side has
// `runs` runs.
bool HasAlarm(MadeRuns& made, const MadeProgram& base, const MadeProgram& now, std::size_t runs,
              double level) {
  std::vector<Side> base_runs, now_runs;
  for (std::size_t i = 0; i < runs; ++i) {
    base_runs.push_back(made.Run(base));
    now_runs.push_back(made.Run(now));
  }
  Changes changes(SumOf(base_runs), SumOf(now_runs), false, base_runs, now_runs);
  changes.Judge(ErrorsForFamily(changes.count(), level));
  return changes.total().change.is_significant || changes.rows()[0].change.is_significant;
}

int AlarmsOf(const MadeProgram& base, const MadeProgram& now, std::size_t runs, double level,
             std::uint64_t seed) {
  constexpr int kPairs = 1'000;
  MadeRuns made(seed);
  int alarms = 0;
  for (int pair = 0; pair < kPairs; ++pair)
    alarms += HasAlarm(made, base, now, runs, level) ? 1 : 0;
  return alarms;
}

// No more alarms in 1,000 comparisons of a program with itself than the level allows.
void ExpectAtLevel(const MadeProgram& base, const MadeProgram& now, std::size_t runs,
                   const std::string& what) {
  for (const double level : {1e-3, 0.1}) {
    const int alarms = AlarmsOf(base, now, runs, level, 20261129);
    testing::ExpectWithinChance(alarms,
                                {.least = 0, .most = testing::BinomialBounds(1'000, level).most},
                                "false alarms at level " + std::to_string(level) + ", " + what);
    // The seed is fixed, and so is the number: what is found is what the documents say.
    EXPECT_LE(alarms, 1'000 * level) << what;
  }
}

TEST(ChangesTest, AProgramSeldomDiffersFromItself) {
  const MadeProgram program;
  ExpectAtLevel(program, program, 1, "equal runs");
}

TEST(ChangesTest, NeitherDoesItWithFewerSamplesOrIterations) {
  const MadeProgram program;
  MadeProgram more;
  more.samples = 20'000;
  more.iterations = 20'000;
  ExpectAtLevel(more, program, 1, "a base of many samples");
  ExpectAtLevel(program, more, 1, "a base of few samples");
}

TEST(ChangesTest, NeitherDoesItIfRunsDifferMoreThanTheirSamplesSay) {
  MadeProgram program;
  program.run_spread = 0.1;
  program.cluster = 5;
  for (const std::size_t runs : {3, 5, 10})
    ExpectAtLevel(program, program, runs, std::to_string(runs) + " runs that differ");
}

TEST(ChangesTest, ASlowFunctionIsFound) {
  const MadeProgram program;
  MadeProgram slow;
  slow.slowdown = 2;
  EXPECT_EQ(AlarmsOf(program, slow, 1, 1e-3, 1), 1'000);
  MadeProgram noisy, noisy_slow;
  noisy.run_spread = noisy_slow.run_spread = 0.03;
  noisy_slow.slowdown = 2;
  EXPECT_EQ(AlarmsOf(noisy, noisy_slow, 10, 1e-3, 1), 1'000) << "with ten runs on each side";
}

TEST(ChangesTest, AmountsAreByUnitOfWork) {
  MadeRuns made(3);
  MadeProgram longer;
  longer.samples = 2'000;
  longer.iterations = 2'000;
  Changes changes(made.Run({}), made.Run(longer), false);
  changes.Judge(ErrorsForFamily(changes.count()));
  EXPECT_FALSE(changes.total().change.is_significant);
  EXPECT_NEAR(changes.total().base_amount, kSampleNs, kSampleNs / 5);
  EXPECT_NEAR(changes.total().now_amount, kSampleNs, kSampleNs / 5);
}

TEST(ChangesTest, AFunctionThatIsNewOrGoneIsAChange) {
  Side base{.sum = 1000, .whole = 1000, .functions = {{"old", {.self = 1000, .total = 1000}}}};
  Side now{.sum = 2000, .whole = 2000, .functions = {{"new", {.self = 2000, .total = 2000}}}};
  base.samples.AddThread(1000, 1000);
  now.samples.AddThread(2000, 2000);
  Changes changes(base, now, false);
  changes.Judge(ErrorsForFamily(changes.count()));
  ASSERT_EQ(changes.rows().size(), 2u);
  EXPECT_EQ(changes.rows()[0].name, "new");
  EXPECT_EQ(changes.rows()[1].name, "old");
  for (const FunctionChange& row : changes.rows())
    EXPECT_TRUE(row.change.is_significant) << row.name;
  EXPECT_EQ(changes.total().change.change, 1000);
}

}  // namespace
}  // namespace strobe::internal
