#include "strobe/runtime/slot_arena.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "manual_traits.h"

namespace strobe::internal {
namespace {

using Arena = SlotArena<testing::ManualTraits>;
using Slot = Arena::Slot;
constexpr std::size_t kRingBytes = 4096;

class SlotArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    arena_ = Arena::Acquire(kRingBytes);
    ASSERT_NE(arena_, nullptr);
    arena_->AppendAll(free_);
    ASSERT_TRUE(!free_.empty() || arena_->Grow(free_));
  }
  void TearDown() override { Arena::Release(arena_); }

  std::vector<Slot*> Marked() {
    std::vector<Slot*> marked;
    arena_->VisitMarked([&](Slot& slot) { marked.push_back(&slot); });
    return marked;
  }

  Arena* arena_ = nullptr;
  std::vector<Slot*> free_;
};

TEST_F(SlotArenaTest, ASlotIsFoundByItsTokenForEver) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(arena_->Grow(free_));
  std::set<std::uint32_t> indices;
  for (Slot* slot : free_) {
    EXPECT_EQ(arena_->Find(slot->token.index), slot);
    EXPECT_EQ(slot->token.arena, arena_->number());
    indices.insert(slot->token.index);
  }
  EXPECT_EQ(indices.size(), free_.size());
}

TEST_F(SlotArenaTest, IndicesOfNobodyFindNothing) {
  EXPECT_EQ(arena_->Find(static_cast<std::uint32_t>(Arena::kMaxChunks * Arena::kSlotsPerChunk - 1)),
            nullptr);
  EXPECT_EQ(arena_->Find(0xFFFFFF), nullptr);
  EXPECT_EQ(arena_->Find(0xFFFFFFFF), nullptr);
}

TEST_F(SlotArenaTest, AReleasedArenaIsUsedAgainWithTheSameSlots) {
  Arena* const before = arena_;
  Slot* const slot = arena_->Find(0);
  slot->token.use = 77;
  Arena::Release(arena_);
  arena_ = Arena::Acquire(2 * kRingBytes);
  EXPECT_EQ(arena_, before);
  EXPECT_EQ(arena_->Find(0), slot);
  EXPECT_EQ(slot->token.use, 77)
      << "or a late signal of the former owner would be taken for the new one's";
  std::vector<Slot*> again;
  arena_->AppendAll(again);
  EXPECT_EQ(std::set<Slot*>(again.begin(), again.end()),
            std::set<Slot*>(free_.begin(), free_.end()));
  EXPECT_EQ(arena_->RingMemory(*slot).size(), 2 * kRingBytes);
}

TEST_F(SlotArenaTest, EachSlotHasARingOfItsOwn) {
  std::vector<std::span<std::byte>> rings;
  for (Slot* slot : free_) rings.push_back(arena_->RingMemory(*slot));
  std::sort(rings.begin(), rings.end(),
            [](const auto& one, const auto& other) { return one.data() < other.data(); });
  for (const auto& ring : rings) ASSERT_EQ(ring.size(), kRingBytes);
  for (std::size_t i = 1; i < rings.size(); ++i)
    EXPECT_GE(rings[i].data(), rings[i - 1].data() + kRingBytes);
}

TEST_F(SlotArenaTest, VisitsEachMarkedSlotOnce) {
  ASSERT_TRUE(arena_->Grow(free_));
  EXPECT_TRUE(Marked().empty());
  Slot* const first = arena_->Find(0);
  Slot* const last = arena_->Find(Arena::kSlotsPerChunk * 2 - 1);
  arena_->Mark(*last);
  arena_->Mark(*first);
  arena_->Mark(*first);
  EXPECT_EQ(Marked(), (std::vector<Slot*>{first, last}));
  EXPECT_TRUE(Marked().empty());
  arena_->Mark(*first);
  arena_->Mark(*last);
  arena_->Unmark(*first);
  EXPECT_EQ(Marked(), std::vector<Slot*>{last});
}

TEST_F(SlotArenaTest, AsManyArenasAsTheHandlersTableHolds) {
  std::vector<Arena*> arenas;
  while (Arena* arena = Arena::Acquire(kRingBytes)) arenas.push_back(arena);
  EXPECT_EQ(arenas.size(), kMaxArenas - 1);
  for (Arena* arena : arenas) EXPECT_LT(arena->number(), kMaxArenas);
  Arena::Release(arenas.back());
  Arena* const again = Arena::Acquire(kRingBytes);
  EXPECT_EQ(again, arenas.back());
  for (Arena* arena : arenas) Arena::Release(arena);
}

}  // namespace
}  // namespace strobe::internal
