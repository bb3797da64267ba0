#include "strobe/provider/sampled_events.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "support/chance.h"

namespace strobe {
namespace {

// A type for each test: a thread's distances belong to the provider.
template <int kNumber>
struct Jobs {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"jobs", "count"},
                                                        ValueType{"work", "bytes"}};
  [[nodiscard]] bool enabled() const { return true; }
};
struct Depth {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"depth", "jobs"}};
  [[nodiscard]] bool enabled() const { return true; }
};

// Keeps the values of each event that it takes.
struct FakeProfiler {
  std::mutex mutex;
  std::vector<std::vector<std::int64_t>> events;
  std::uint32_t skip = 0;
  bool is_taken = true;

  template <class Provider>
  bool CaptureHere(const std::array<std::int64_t, Provider::kValueTypes.size()>& values,
                   std::uint32_t frames, internal::StackKeeper* /*keeper*/) {
    if (!is_taken) return false;
    const std::lock_guard lock(mutex);
    events.emplace_back(values.begin(), values.end());
    skip = frames;
    return true;
  }
  [[nodiscard]] std::int64_t Sum(std::size_t column) const {
    std::int64_t sum = 0;
    for (const auto& values : events) sum += values[column];
    return sum;
  }
};

using Values = std::vector<std::vector<std::int64_t>>;

TEST(SampledEvents, RecordsEveryEventAtAnIntervalOfOne) {
  FakeProfiler profiler;
  SampledEvents<Jobs<0>> jobs(profiler, 1);
  jobs.Add(7);
  jobs.Add(0);
  jobs.Add(1);
  jobs.Add(UINT64_MAX);
  EXPECT_EQ(profiler.events, (Values{{1, 7}, {1, 1}, {1, std::int64_t{1} << 60}}));
  EXPECT_EQ(profiler.skip, 2U);
  EXPECT_EQ(jobs.untaken(), SampledAmounts());
}

TEST(SampledEvents, TakesTheNearestIntervalThatThereIs) {
  FakeProfiler profiler;
  for (const std::int64_t interval : {std::int64_t{0}, INT64_MIN}) {
    SampledEvents<Depth> depth(profiler, interval);
    depth.Add(3);
  }
  EXPECT_EQ(profiler.events, (Values{{3}, {3}})) << "one value type has the amounts";
  SampledEvents<Jobs<1>> jobs(profiler, INT64_MAX);
  for (int i = 0; i < 1000; ++i) jobs.Add(std::uint64_t{1} << 50);
  EXPECT_GE(profiler.events.size(), 1002U) << "far above the greatest interval";
}

TEST(SampledEvents, AddsUpToWhatTheThreadsHaveBrought) {
  constexpr std::int64_t kInterval = 1000;
  constexpr int kThreads = 4;
  constexpr std::int64_t kEvents = 200'000;
  constexpr std::array<std::uint64_t, 2> kAmounts{20, 1500};
  for (const std::uint64_t amount : kAmounts) {
    FakeProfiler profiler;
    SampledEvents<Jobs<2>> jobs(profiler, kInterval);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (std::int64_t event = 0; event < kEvents / kThreads; ++event) jobs.Add(amount);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double p = -std::expm1(-static_cast<double>(amount) / kInterval);
    // Each event brings 0, or if it is sampled 1 / p, rounded at random: by a variance of 1/4.
    const double variance = static_cast<double>(kEvents) * ((1 - p) / p + p / 4);
    const testing::ChanceBounds bounds =
        testing::SumBounds(static_cast<double>(kEvents), variance, 1 / p + 1);
    const std::string of_amount = absl::StrCat(" of amount ", amount, ", seeds of the clock");
    testing::ExpectWithinChance(static_cast<double>(profiler.Sum(0)), bounds, "events" + of_amount);
    testing::ExpectWithinChance(static_cast<double>(profiler.Sum(1)) / static_cast<double>(amount),
                                bounds, "sum" + of_amount);
    testing::ExpectWithinChance(static_cast<double>(profiler.events.size()),
                                testing::BinomialBounds(kEvents, p), "samples" + of_amount);
    EXPECT_EQ(jobs.untaken(), SampledAmounts());
  }
}

TEST(SampledEvents, CountsWhatTheProfilerDoesNotTake) {
  FakeProfiler profiler;
  profiler.is_taken = false;
  SampledEvents<Jobs<3>> jobs(profiler, 1);
  jobs.Add(5);
  std::thread([&] { jobs.Add(20); }).join();
  EXPECT_EQ(jobs.untaken(), (SampledAmounts{.count = 2, .total = 25}));
  profiler.is_taken = true;
  jobs.Add(100);
  EXPECT_EQ(profiler.events, (Values{{1, 100}}));
  EXPECT_EQ(jobs.untaken(), (SampledAmounts{.count = 2, .total = 25}));
}

}  // namespace
}  // namespace strobe
