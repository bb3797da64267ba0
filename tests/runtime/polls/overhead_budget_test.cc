#include "strobe/runtime/polls/overhead_budget.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/provider/sample_provider.h"

namespace strobe::internal {
namespace {

constexpr double kBudget = 0.001;
constexpr double kRequestedHz = 100;

// A program, and a profiler that does what the budget says.
class Model {
 public:
  double cpus = 1;                  // that the program keeps busy
  double instant_cost_ns = 50'000;  // of one instant
  double fixed_share = 0;           // of a CPU: what the profiler costs without instants

  // Lets a second pass, in steps as long as the time between two instants. Returns what the
  // profiler has cost, as a share of the process's CPU time.
  double Second() {
    const double process_before_ns = process_ns_;
    const double cost_before_ns = cost_ns_;
    for (double second_ns = 0; second_ns < 1e9;) {
      const double gap_ns = std::min(1e9 / budget_.rate_hz(), 1e9);
      second_ns += gap_ns;
      now_ns_ += gap_ns;
      // An instant's cost varies from one to the next.
      const double cost_ns = instant_cost_ns * (0.5 + random_.Uniform()) + fixed_share * gap_ns;
      cost_ns_ += cost_ns;
      process_ns_ += cpus * gap_ns + cost_ns;
      ++instants_;
      budget_.Note({.monotonic_ns = static_cast<std::int64_t>(now_ns_),
                    .process_cpu_ns = static_cast<std::int64_t>(process_ns_),
                    .profiler_cpu_ns = static_cast<std::int64_t>(cost_ns_),
                    .instants = instants_});
    }
    return (cost_ns_ - cost_before_ns) / (process_ns_ - process_before_ns);
  }
  [[nodiscard]] double rate_hz() const { return budget_.rate_hz(); }

 private:
  OverheadBudget budget_{kBudget, kRequestedHz};
  RandomSource random_{1};
  double now_ns_ = 1e9;
  double process_ns_ = 0;
  double cost_ns_ = 0;
  std::int64_t instants_ = 0;
};

// The largest and the least of the rates in some seconds.
struct Range {
  double least = 1e18;
  double most = 0;
};
Range RatesIn(Model& model, int seconds) {
  Range range;
  for (int i = 0; i < seconds; ++i) {
    model.Second();
    range.least = std::min(range.least, model.rate_hz());
    range.most = std::max(range.most, model.rate_hz());
  }
  return range;
}

TEST(OverheadBudget, TheFirstSecondHasTheRequestedRate) {
  Model model;
  EXPECT_EQ(model.rate_hz(), kRequestedHz);
  model.Second();
  model.Second();
  EXPECT_LT(model.rate_hz(), kRequestedHz);
}

TEST(OverheadBudget, TheRateFallsUntilTheBudgetHolds) {
  Model model;
  for (int i = 0; i < 10; ++i) model.Second();
  double cost = 0;
  for (int i = 0; i < 100; ++i) cost += model.Second() / 100;
  EXPECT_NEAR(cost, kBudget, 0.1 * kBudget);
  EXPECT_NEAR(model.rate_hz(), 20, 6);
}

TEST(OverheadBudget, TheRateDoesNotOscillate) {
  Model model;
  for (int i = 0; i < 10; ++i) model.Second();
  const Range range = RatesIn(model, 100);
  EXPECT_LT(range.most, 1.6 * range.least) << "beyond the noise of what an instant costs";
}

TEST(OverheadBudget, TheRateFollowsTheProgram) {
  Model model;
  for (int i = 0; i < 10; ++i) model.Second();
  const double one_cpu_hz = model.rate_hz();
  model.cpus = 16;
  for (int i = 0; i < 10; ++i) model.Second();
  EXPECT_EQ(model.rate_hz(), kRequestedHz) << "such a program pays for it";
  model.cpus = 1;
  for (int i = 0; i < 20; ++i) model.Second();
  EXPECT_NEAR(model.rate_hz(), one_cpu_hz, 0.3 * one_cpu_hz);
}

TEST(OverheadBudget, ACostThatDoesNotDependOnTheRateIsPaidFromTheBudgetToo) {
  Model model;
  model.fixed_share = 0.0005;
  for (int i = 0; i < 60; ++i) model.Second();
  double cost = 0;
  for (int i = 0; i < 100; ++i) cost += model.Second() / 100;
  EXPECT_NEAR(cost, kBudget, 0.1 * kBudget);
  EXPECT_NEAR(model.rate_hz(), 10, 4);
}

TEST(OverheadBudget, NothingStarvesTheProfiler) {
  Model model;
  model.instant_cost_ns = 1e9;
  model.fixed_share = 0.5;
  for (int i = 0; i < 20; ++i) model.Second();
  EXPECT_EQ(model.rate_hz(), OverheadBudget::kLeastRateHz);
  model.instant_cost_ns = 50'000;
  model.fixed_share = 0;
  for (int i = 0; i < 60; ++i) model.Second();
  EXPECT_NEAR(model.rate_hz(), 20, 6) << "it rises again";
}

TEST(OverheadBudget, AnIdleProcessIsSampledAtTheLeastRate) {
  Model model;
  model.cpus = 0;
  for (int i = 0; i < 30; ++i) model.Second();
  EXPECT_NEAR(model.rate_hz(), OverheadBudget::kLeastRateHz, 0.5);
}

TEST(OverheadBudget, ARequestedRateBelowTheLeastIsKept) {
  const OverheadBudget budget(kBudget, 0.25);
  EXPECT_EQ(budget.rate_hz(), 0.25);
}

TEST(OverheadBudget, AnotherRequestedRateCountsAtOnceWithinTheBudget) {
  OverheadBudget budget(kBudget, kRequestedHz);
  budget.set_requested_rate_hz(100'000);
  EXPECT_DOUBLE_EQ(budget.rate_hz(),
                   1e9 * OverheadBudget::kFreeOverhead / OverheadBudget::kFirstCostNs);
  budget.set_requested_rate_hz(500);
  EXPECT_EQ(budget.rate_hz(), 500) << "the first second is nearly free";
  for (std::int64_t i = 0; i < 20; ++i)
    budget.Note({.monotonic_ns = i * 1'000'000'000, .process_cpu_ns = i * 1'000'000'000});
  EXPECT_EQ(budget.rate_hz(), budget.affordable_rate_hz());
  EXPECT_LT(budget.rate_hz(), 500);
  budget.set_requested_rate_hz(2);
  EXPECT_EQ(budget.rate_hz(), 2);
}

TEST(OverheadBudget, ClocksThatGoBackDoNoHarm) {
  OverheadBudget budget(kBudget, kRequestedHz);
  for (std::int64_t i = 0; i < 20; ++i) {
    budget.Note({.monotonic_ns = i * 1'000'000'000,
                 .process_cpu_ns = -i,
                 .profiler_cpu_ns = -i,
                 .instants = i});
  }
  EXPECT_GE(budget.rate_hz(), OverheadBudget::kLeastRateHz);
  EXPECT_LE(budget.rate_hz(), kRequestedHz);
}

}  // namespace
}  // namespace strobe::internal
