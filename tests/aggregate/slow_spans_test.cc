#include "strobe/aggregate/slow_spans.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace strobe {
namespace {

TEST(SlowSpans, EachSpanIsThereOnce) {
  const auto spans = std::make_unique<SlowSpans>();
  EXPECT_TRUE(spans->Sorted().empty());
  for (const SpanNumber span : {7U, 3U, 7U, 0xFFFFFFFFU}) spans->Add(span);
  EXPECT_EQ(spans->Sorted(), (std::vector<SpanNumber>{3, 7, 0xFFFFFFFF}));
  EXPECT_EQ(spans->added(), 4U);
}

TEST(SlowSpans, ThoseUnderWayAreAmongTheOthersAndAreNotAdded) {
  const auto spans = std::make_unique<SlowSpans>();
  spans->Add(5);
  EXPECT_EQ(spans->Sorted(std::vector<SpanNumber>{7, 5, 2}), (std::vector<SpanNumber>{2, 5, 7}));
  EXPECT_EQ(spans->Sorted(), (std::vector<SpanNumber>{5}));
  EXPECT_EQ(spans->added(), 1U);
}

TEST(SlowSpans, TheOldestIsForgottenAtTheLimit) {
  const auto spans = std::make_unique<SlowSpans>();
  for (SpanNumber span = 1; span <= SlowSpans::kMaxSpans + 2; ++span) spans->Add(span);
  const std::vector<SpanNumber> sorted = spans->Sorted();
  ASSERT_EQ(sorted.size(), SlowSpans::kMaxSpans);
  EXPECT_EQ(sorted.front(), 3U);
  EXPECT_EQ(sorted.back(), SlowSpans::kMaxSpans + 2);
}

TEST(SlowSpans, ThreadsAddAtOnce) {
  const auto spans = std::make_unique<SlowSpans>();
  constexpr SpanNumber kEach = 1000;
  std::vector<std::thread> threads;
  for (SpanNumber t = 0; t < 4; ++t) {
    threads.emplace_back([&spans, t] {
      for (SpanNumber i = 1; i <= kEach; ++i) spans->Add(t * kEach + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(spans->Sorted().size(), 4U * kEach);
}

TEST(SlowSpans, TheListenerIsTold) {
  static std::vector<SpanNumber> told;
  const std::uint64_t before = ProcessSlowSpans().added();
  TellSlowSpans([](SpanNumber span) noexcept { told.push_back(span); });
  NoteSlowSpan(7);
  TellSlowSpans(nullptr);
  NoteSlowSpan(8);
  EXPECT_EQ(told, std::vector<SpanNumber>{7});
  EXPECT_EQ(ProcessSlowSpans().added(), before + 2);
}

TEST(SlowSpans, TheProcessHasOneLog) { EXPECT_EQ(&ProcessSlowSpans(), &ProcessSlowSpans()); }

}  // namespace
}  // namespace strobe
