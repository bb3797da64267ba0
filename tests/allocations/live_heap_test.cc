#include "strobe/allocations/live_heap.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/allocations/live_blocks.h"

namespace strobe::internal {
namespace {

struct Seen {
  std::vector<Address> frames;
  StackEnd end{};
  SampledAmounts amounts;

  friend bool operator==(const Seen&, const Seen&) = default;
};

std::vector<Seen> Visited(const LiveHeap& heap) {
  std::vector<Seen> seen;
  heap.Visit(0, [&](const LiveHeap::Seen& block) {
    if (!block.is_live) return;
    seen.push_back({{block.leaf_first.begin(), block.leaf_first.end()}, block.end, block.amounts});
  });
  return seen;
}

TEST(LiveHeap, HasEachBlockWithItsStack) {
  const auto heap = std::make_unique<LiveHeap>();
  EXPECT_TRUE(Visited(*heap).empty());
  const auto blocks = std::make_unique<LiveBlocks<>>();
  blocks->Use(heap->blocks);
  const std::vector<Address> frames{0x10, 0x20, 0x30};
  const std::uint32_t stack = heap->stacks.Add(frames, StackEnd::kTruncated);
  ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(0x1000), {2, 200, stack}));
  ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(0x2000), {1, 50, StackTable<>::kNone}));
  EXPECT_EQ(Visited(*heap), (std::vector<Seen>{{frames, StackEnd::kTruncated, {2, 200}},
                                               {{}, StackEnd{}, {1, 50}}}));
  blocks->Remove(reinterpret_cast<void*>(0x1000));
  EXPECT_EQ(Visited(*heap).size(), 1U);
}

TEST(LiveHeap, BlocksBeyondTheLimitOfFramesKeepTheirAmounts) {
  const auto heap = std::make_unique<LiveHeap>();
  const auto blocks = std::make_unique<LiveBlocks<>>();
  blocks->Use(heap->blocks);
  std::vector<Address> frames(kMaxFramesLimit);
  for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = 0x1000 + i;
  const std::uint32_t stack = heap->stacks.Add(frames, StackEnd::kComplete);
  constexpr std::size_t kShown = LiveHeap::kMaxVisitedFrames / kMaxFramesLimit;
  for (std::uintptr_t i = 1; i <= kShown + 10; ++i)
    ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(i * 16), {1, 16, stack}));
  std::size_t shown = 0;
  std::size_t all = 0;
  heap->Visit(0, [&](const LiveHeap::Seen& block) {
    ++all;
    shown += block.leaf_first.empty() ? 0 : 1;
    ASSERT_EQ(block.amounts, (SampledAmounts{1, 16}));
  });
  EXPECT_EQ(all, kShown + 10);
  EXPECT_EQ(shown, kShown);
}

TEST(LiveHeap, AFurtherUseBeginsEmpty) {
  const auto first = std::make_unique<LiveHeap>();
  const auto second = std::make_unique<LiveHeap>();
  const auto blocks = std::make_unique<LiveBlocks<>>();
  blocks->Use(first->blocks);
  ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(0x1000), {1, 100, 0}));
  blocks->Use(second->blocks);
  EXPECT_FALSE(blocks->MayHold(reinterpret_cast<void*>(0x1000)));
  EXPECT_FALSE(blocks->Remove(reinterpret_cast<void*>(0x1000)).has_value());
  ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(0x2000), {1, 50, 0}));
  EXPECT_EQ(Visited(*second).size(), 1U);
  blocks->Use(first->blocks);
  EXPECT_TRUE(Visited(*first).empty());
}

TEST(LiveHeap, ShowsThePeakAndTheAge) {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  const auto heap = std::make_unique<LiveHeap>();
  for (std::size_t i = 0; i < heap->age_labels.size(); ++i) heap->age_labels[i] = 100 + i;
  const auto blocks = std::make_unique<LiveBlocks<>>();
  blocks->Use(heap->blocks);
  constexpr std::int64_t kNow_ns = 10'000 * kSecond_ns;
  // By seconds of age: 3600 and more, 600, 60, 10, 1, 0, of later than now, unknown.
  const std::vector<std::int64_t> births_s{1,    6400, 6401,   9400,   9940,
                                           9990, 9999, 10'000, 10'001, 0};
  for (std::size_t i = 0; i < births_s.size(); ++i) {
    ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(16 * (i + 1)),
                            {1, static_cast<std::int64_t>(i + 1), 0, births_s[i] * kSecond_ns}));
  }
  blocks->Remove(reinterpret_cast<void*>(16));
  std::vector<std::uint64_t> labels(births_s.size());
  heap->Visit(kNow_ns, [&](const LiveHeap::Seen& block) {
    EXPECT_TRUE(block.is_of_peak);
    EXPECT_EQ(block.is_live, block.amounts.total != 1);
    labels[static_cast<std::size_t>(block.amounts.total - 1)] = block.labels;
  });
  EXPECT_EQ(labels, (std::vector<std::uint64_t>{kNoContext, 105, 104, 104, 103, 102, 101, 100, 100,
                                                kNoContext}));
}

// In a fork's child of a program whose worker sees the heap.
TEST(LiveHeap, ABlockStaysThatMayNotBeRemoved) {
  const auto heap = std::make_unique<LiveHeap>();
  const auto blocks = std::make_unique<LiveBlocks<>>();
  blocks->Use(heap->blocks);
  ASSERT_TRUE(blocks->Add(reinterpret_cast<void*>(0x1000), {1, 100, 0}));
  const auto may_not = [] { return false; };
  EXPECT_FALSE(blocks->Remove(reinterpret_cast<void*>(0x1000), may_not).has_value());
  EXPECT_EQ(Visited(*heap).size(), 1U);
}

// A worker reads what any program may have written: numbers out of range, stacks without an end,
// amounts that no program has.
TEST(LiveHeap, BelievesNothingThatStandsInIt) {
  constexpr std::array<std::uint32_t, 4> kRanges{0xFFFFFFFF, StackTable<>::kNodes, 1000, 2};
  std::mt19937_64 random(1);
  for (const std::uint32_t range : kRanges) {
    const auto heap = std::make_unique<LiveHeap>();
    auto* const bytes = reinterpret_cast<std::byte*>(heap.get());
    for (std::size_t i = 0; i + sizeof(std::uint32_t) <= sizeof(LiveHeap); i += sizeof(range)) {
      const auto word = static_cast<std::uint32_t>(random() % range);
      std::memcpy(bytes + i, &word, sizeof(word));
    }
    heap->Visit(0, [&](const LiveHeap::Seen& block) {
      ASSERT_TRUE(block.is_live || block.is_of_peak);
      ASSERT_LE(block.leaf_first.size(), kMaxFramesLimit);
      ASSERT_LT(static_cast<std::size_t>(block.end), kStackEndCount);
      ASSERT_TRUE(block.amounts.total >= 0 && block.amounts.total <= LiveHeap::kMaxBytes);
    });
  }
}

}  // namespace
}  // namespace strobe::internal
