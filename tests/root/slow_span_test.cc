#include "strobe/slow_span.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "strobe/aggregate/slow_spans.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/registration_link.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/scoped_zone.h"

namespace strobe {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

SpanNumber CurrentSpan() { return internal::OwnContext().span(); }

void WaitForTheClock() {
  const SystemClock clock;
  const std::int64_t begin_ns = clock.MonotonicNs();
  while (clock.MonotonicNs() < begin_ns + 2) {
  }
}

bool IsSlow(SpanNumber span) {
  const std::vector<SpanNumber> slow = ProcessSlowSpans().Sorted();
  return std::ranges::binary_search(slow, span);
}

TEST(SlowSpan, OneThatTookLongerIsSlow) {
  SpanNumber number = 0;
  {
    const SlowSpan span(1);
    number = CurrentSpan();
    EXPECT_NE(number, 0U);
    WaitForTheClock();
    EXPECT_FALSE(IsSlow(number)) << "it has not ended";
  }
  EXPECT_EQ(CurrentSpan(), 0U);
  EXPECT_TRUE(IsSlow(number));
}

TEST(SlowSpan, OneThatDidNotIsNot) {
  SpanNumber number = 0;
  {
    const SlowSpan span(kNever);
    number = CurrentSpan();
  }
  EXPECT_FALSE(IsSlow(number));
}

TEST(SlowSpan, WithoutAThresholdItIsNone) {
  const SlowSpan none(0);
  EXPECT_EQ(CurrentSpan(), 0U);
  const SlowSpan negative(-1);
  EXPECT_EQ(CurrentSpan(), 0U);
}

TEST(SlowSpan, TheOutermostOneDecides) {
  SpanNumber number = 0;
  {
    const SlowSpan outer(kNever);
    number = CurrentSpan();
    {
      const SlowSpan inner(1);
      EXPECT_EQ(CurrentSpan(), number);
      WaitForTheClock();
    }
    EXPECT_EQ(CurrentSpan(), number);
  }
  EXPECT_FALSE(IsSlow(number));
}

TEST(SlowSpan, ZonesAndTracesAreSpansAndKeepLabels) {
  {
    const ScopedZone zone("request", {.slow_over_ns = 1});
    EXPECT_NE(CurrentSpan(), 0U);
    const ScopedLabels labels({{"endpoint", "/pay"}});
    EXPECT_NE(CurrentSpan(), 0U);
    EXPECT_EQ(CurrentLabels().set().Text("endpoint"), "/pay");
  }
  const ScopedTrace trace(1, 2, 3, {.slow_over_ns = 1});
  EXPECT_NE(CurrentSpan(), 0U);
  EXPECT_EQ(CurrentTrace(), (TraceContext{1, 2, 3}));
}

TEST(SlowSpan, NoTwoSpansOfTheProcessHaveOneNumber) {
  constexpr std::size_t kEach = 1000;  // some blocks
  std::vector<std::vector<SpanNumber>> numbers(4);
  std::vector<std::thread> threads;
  threads.reserve(numbers.size());
  for (std::vector<SpanNumber>& own : numbers) {
    threads.emplace_back([&own] {
      for (std::size_t i = 0; i < kEach; ++i) {
        const SlowSpan span(kNever);
        own.push_back(CurrentSpan());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<SpanNumber> all;
  for (const std::vector<SpanNumber>& own : numbers) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), 4 * kEach);
  EXPECT_FALSE(all.contains(0));
}

}  // namespace
}  // namespace strobe
