#include "strobe/runtime/session/kept_periods.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kOneSliceNs = 1'000'000'000;
constexpr std::size_t kManyBytes = std::size_t{64} << 20;

// Slices of a second; the value of second `i` is i.
class Slices {
 public:
  Slices() { recording_.AddThread(0, 1, "thread"); }

  RecordedPeriod Next(std::size_t stacks = 1) {
    for (std::size_t i = 0; i < stacks; ++i) {
      const std::vector<Address> stack = {next_address_ += 16};
      recording_.Add(0, {.leaf_first = stack}, std::vector<std::int64_t>{i == 0 ? second_ : 0},
                     kNoContext);
    }
    ++second_;
    return recording_.Take(ProcessLabels(), {second_ * kOneSliceNs, second_ * kOneSliceNs});
  }

 private:
  std::int64_t second_ = 0;
  Address next_address_ = 0x1000;
  Recording recording_{{0}, kManyBytes, {}};
};

Stats StatsOfSlice(std::uint64_t drains) {
  Stats stats;
  stats.drains = drains;
  return stats;
}

std::optional<KeptPeriods::Window> FindLast(const KeptPeriods& kept, std::int64_t last_ns) {
  return kept.Find(last_ns, std::vector<std::size_t>{0}, std::nullopt, {});
}

TEST(KeptPeriods, AWindowHasTheSlicesThatReachBackSoFar) {
  Slices slices;
  KeptPeriods kept(10 * kOneSliceNs, kManyBytes);
  EXPECT_FALSE(FindLast(kept, kOneSliceNs).has_value());
  for (std::uint64_t i = 0; i < 5; ++i) kept.Add(slices.Next(), StatsOfSlice(i));
  // Two seconds and a half reach into the third slice from the end.
  const auto window = FindLast(kept, 5 * kOneSliceNs / 2);
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(window->period.time_ns, 2 * kOneSliceNs);
  EXPECT_EQ(window->period.duration_ns, 3 * kOneSliceNs);
  EXPECT_EQ(window->period.samples.rows.Sum(0), 2 + 3 + 4);
  EXPECT_EQ(window->at_begin.drains, 2u);
  EXPECT_EQ(window->text, "the last 3.0 s");
}

TEST(KeptPeriods, AWindowSaysWhatIsMissing) {
  Slices slices;
  KeptPeriods kept(10 * kOneSliceNs, kManyBytes);
  for (int i = 0; i < 5; ++i) kept.Add(slices.Next(), {});
  EXPECT_EQ(FindLast(kept, 10 * kOneSliceNs)->text,
            "the last 5.0 s of 10.0 s: the session began then");
  for (int i = 0; i < 20; ++i) kept.Add(slices.Next(), {});
  EXPECT_EQ(kept.size(), 10u);
  EXPECT_EQ(FindLast(kept, 10 * kOneSliceNs)->text, "the last 10.0 s");
  EXPECT_EQ(FindLast(kept, 60 * kOneSliceNs)->text,
            "the last 10.0 s of 60.0 s: no more is kept (keep.last_s)");
}

TEST(KeptPeriods, TheLimitOfMemoryDropsTheOldestAndSaysSo) {
  Slices slices;
  constexpr std::size_t kLimitBytes = std::size_t{1} << 20;
  KeptPeriods kept(100 * kOneSliceNs, kLimitBytes);
  for (int i = 0; i < 50; ++i) {
    kept.Add(slices.Next(/*stacks=*/2000), {});
    ASSERT_LE(kept.memory_bytes(), kLimitBytes);
  }
  ASSERT_GT(kept.size(), 0u);
  ASSERT_LT(kept.size(), 50u);
  const auto count = static_cast<std::int64_t>(kept.size());
  const auto window = FindLast(kept, 100 * kOneSliceNs);
  EXPECT_EQ(window->period.time_ns, (50 - count) * kOneSliceNs);
  EXPECT_EQ(window->text,
            WindowText(count * kOneSliceNs, 100 * kOneSliceNs, "the limit collector.memory_bytes"));
  kept.Clear();
  EXPECT_EQ(kept.memory_bytes(), 0u);
  EXPECT_FALSE(FindLast(kept, kOneSliceNs).has_value());
}

}  // namespace
}  // namespace strobe::internal
