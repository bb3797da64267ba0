#include "strobe/runtime/threads/slot_blocks.h"

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using Blocks = SlotBlocks<testing::ManualTraits>;
using Slot = Blocks::Slot;

constexpr std::size_t kRingBytes = 4096;

std::vector<Slot*> Marked(Blocks& blocks) {
  std::vector<Slot*> slots;
  blocks.VisitMarked([&](Slot& slot) { slots.push_back(&slot); });
  return slots;
}

TEST(SlotBlocks, EachSlotHasAChannelOfItsOwn) {
  Blocks blocks(kRingBytes);
  EXPECT_EQ(blocks.arena(), nullptr);
  ASSERT_TRUE(blocks.Open().ok());
  EXPECT_EQ(blocks.size(), 0u);
  ASSERT_TRUE(blocks.Grow().ok());
  Slot* const first = &blocks.Grow()->front();
  EXPECT_EQ(blocks.size(), 2 * Blocks::kBlockSlots);
  std::set<const void*> channels;
  blocks.VisitAll([&](Slot& slot) {
    EXPECT_EQ(blocks.arena()->Find(slot.token->index), slot.channel);
    channels.insert(slot.channel);
  });
  EXPECT_EQ(channels.size(), blocks.size());
  EXPECT_EQ(first->token->index, Blocks::kBlockSlots) << "the second block's";
}

TEST(SlotBlocks, OnlyMarkedSlotsAreVisitedAndOnlyOnce) {
  Blocks blocks(kRingBytes);
  ASSERT_TRUE(blocks.Open().ok());
  ASSERT_TRUE(blocks.Grow().ok());
  const auto slots = *blocks.Grow();
  blocks.arena()->Mark(*slots[63].channel);
  blocks.arena()->Mark(*slots[5].channel);
  EXPECT_THAT(Marked(blocks), ElementsAre(&slots[5], &slots[63]));
  EXPECT_THAT(Marked(blocks), ElementsAre());
}

TEST(SlotBlocks, AMarkOfAnEarlierOwnerIsNoSlot) {
  {
    Blocks earlier(kRingBytes);
    ASSERT_TRUE(earlier.Open().ok());
    earlier.arena()->Mark(*earlier.Grow()->front().channel);
  }
  Blocks blocks(kRingBytes);
  ASSERT_TRUE(blocks.Open().ok());
  EXPECT_THAT(Marked(blocks), ElementsAre());
}

TEST(SlotBlocks, ACaptureInAnySlotIsSeen) {
  Blocks blocks(kRingBytes);
  ASSERT_TRUE(blocks.Open().ok());
  Slot& slot = blocks.Grow()->back();
  EXPECT_FALSE(blocks.IsCapturing());
  slot.channel->is_capturing = true;
  EXPECT_TRUE(blocks.IsCapturing());
  slot.channel->is_capturing = false;
}

TEST(SlotBlocks, ThereAreAsManyAsThereAreArenas) {
  std::vector<std::unique_ptr<Blocks>> all;
  for (std::size_t i = 0; i < kMaxArenas; ++i) {
    all.push_back(std::make_unique<Blocks>(kRingBytes));
    ASSERT_TRUE(all.back()->Open().ok());
  }
  Blocks one_too_many(kRingBytes);
  EXPECT_EQ(one_too_many.Open().code(), absl::StatusCode::kResourceExhausted);
  all.pop_back();
  EXPECT_TRUE(one_too_many.Open().ok());
}

}  // namespace
}  // namespace strobe::internal
