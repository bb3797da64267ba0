#include "strobe/allocations/live_heap.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"

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
  heap.Visit([&](std::span<const Address> leaf_first, StackEnd end, const SampledAmounts& amounts) {
    seen.push_back({{leaf_first.begin(), leaf_first.end()}, end, amounts});
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
  heap->Visit([&](std::span<const Address> leaf_first, StackEnd, const SampledAmounts& amounts) {
    ++all;
    shown += leaf_first.empty() ? 0 : 1;
    ASSERT_EQ(amounts, (SampledAmounts{1, 16}));
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
    heap->Visit(
        [&](std::span<const Address> leaf_first, StackEnd end, const SampledAmounts& amounts) {
          ASSERT_LE(leaf_first.size(), kMaxFramesLimit);
          ASSERT_LT(static_cast<std::size_t>(end), kStackEndCount);
          ASSERT_TRUE(amounts.total >= 0 && amounts.total <= LiveHeap::kMaxBytes);
        });
  }
}

}  // namespace
}  // namespace strobe::internal
