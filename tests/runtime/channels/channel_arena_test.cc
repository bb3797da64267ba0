#include "strobe/runtime/channels/channel_arena.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using Arena = ChannelArena<testing::ManualTraits>;
using Channel = Arena::Channel;
constexpr std::size_t kArenaRingBytes = 4096;

class ChannelArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    arena_ = Arena::Acquire(kArenaRingBytes);
    ASSERT_NE(arena_, nullptr);
    ASSERT_EQ(arena_->Channels(0).size(), Arena::kChannelsPerChunk);
  }
  void TearDown() override { Arena::Release(arena_); }

  std::vector<std::pair<std::size_t, std::uint64_t>> Marks() {
    std::vector<std::pair<std::size_t, std::uint64_t>> marks;
    arena_->VisitMarks(
        [&](std::size_t chunk, std::uint64_t of_chunk) { marks.emplace_back(chunk, of_chunk); });
    return marks;
  }

  Arena* arena_ = nullptr;
};

TEST_F(ChannelArenaTest, AChannelIsFoundByItsTokenForEver) {
  std::set<std::uint32_t> indices;
  for (std::size_t chunk = 0; chunk < 4; ++chunk) {
    for (Channel& channel : arena_->Channels(chunk)) {
      EXPECT_EQ(arena_->Find(channel.token.index), &channel);
      EXPECT_EQ(channel.token.arena, arena_->number());
      indices.insert(channel.token.index);
    }
  }
  EXPECT_EQ(indices.size(), 4 * Arena::kChannelsPerChunk);
  EXPECT_TRUE(arena_->Channels(Arena::kMaxChunks).empty());
}

TEST_F(ChannelArenaTest, IndicesOfNobodyFindNothing) {
  EXPECT_EQ(
      arena_->Find(static_cast<std::uint32_t>(Arena::kMaxChunks * Arena::kChannelsPerChunk - 1)),
      nullptr);
  EXPECT_EQ(arena_->Find(0xFFFFFF), nullptr);
  EXPECT_EQ(arena_->Find(0xFFFFFFFF), nullptr);
}

TEST_F(ChannelArenaTest, AReleasedArenaIsUsedAgainWithTheSameChannels) {
  Arena* const before = arena_;
  Channel* const channel = arena_->Find(0);
  channel->token.use = 77;
  Arena::Release(arena_);
  arena_ = Arena::Acquire(kArenaRingBytes / 2);
  EXPECT_EQ(arena_, before);
  EXPECT_EQ(arena_->Channels(0).data(), channel);
  EXPECT_EQ(channel->token.use, 77)
      << "or a late signal of the former owner would be taken for the new one's";
  EXPECT_EQ(arena_->RingMemory(0).size(), kArenaRingBytes / 2);
}

TEST_F(ChannelArenaTest, LargerRingsLeaveTheFormerChannelsToLateSignals) {
  Channel* const channel = arena_->Find(1);
  channel->token.use = 77;
  channel->ring.Reset(arena_->RingMemory(1));
  Arena::Release(arena_);
  arena_ = Arena::Acquire(4 * kArenaRingBytes);
  EXPECT_EQ(arena_->Find(1), channel) << "before it is needed, nothing changes";
  Channel* const larger = &arena_->Channels(0)[1];
  EXPECT_NE(larger, channel);
  EXPECT_EQ(arena_->Find(1), larger);
  EXPECT_EQ(larger->token.use, 77);
  EXPECT_EQ(arena_->RingMemory(1).size(), 4 * kArenaRingBytes);
  // A capture that is under way there writes that no collector reads.
  ASSERT_NE(channel->ring.Reserve(100), nullptr);
  channel->ring.Commit(100);
  Arena::Mark(*channel);
  EXPECT_TRUE(Marks().empty());
}

TEST_F(ChannelArenaTest, EachChannelHasARingAndAMemoOfItsOwn) {
  std::vector<std::span<std::byte>> places;
  const std::span<std::byte> all = arena_->MappingOf(*arena_->Find(0)).bytes;
  const std::span<Channel> channels = arena_->Channels(0);
  places.push_back(std::as_writable_bytes(channels));
  for (Channel& channel : channels) {
    places.push_back(arena_->RingMemory(channel.token.index));
    ASSERT_EQ(places.back().size(), kArenaRingBytes);
    places.push_back(std::as_writable_bytes(std::span(&channel.memo(), 1)));
  }
  std::sort(places.begin(), places.end(),
            [](const auto& one, const auto& other) { return one.data() < other.data(); });
  EXPECT_EQ(places.front().data(), all.data());
  for (std::size_t i = 1; i < places.size(); ++i)
    EXPECT_GE(places[i].data(), places[i - 1].data() + places[i - 1].size());
  EXPECT_LE(places.back().data() + places.back().size(), all.data() + all.size());
}

TEST_F(ChannelArenaTest, TellsOfEachMarkOnce) {
  ASSERT_FALSE(arena_->Channels(1).empty());
  EXPECT_TRUE(Marks().empty());
  Channel* const first = arena_->Find(0);
  Channel* const last = arena_->Find(Arena::kChannelsPerChunk * 2 - 1);
  using Pair = std::pair<std::size_t, std::uint64_t>;
  Arena::Mark(*last);
  Arena::Mark(*first);
  Arena::Mark(*first);
  EXPECT_EQ(Marks(), (std::vector<Pair>{{0, 1}, {1, std::uint64_t{1} << 63}}));
  EXPECT_TRUE(Marks().empty());
  Arena::Mark(*first);
  Arena::Mark(*last);
  arena_->Unmark(0);
  EXPECT_EQ(Marks(), (std::vector<Pair>{{1, std::uint64_t{1} << 63}}));
}

TEST_F(ChannelArenaTest, AsManyArenasAsTheHandlersTableHolds) {
  std::vector<Arena*> arenas;
  while (Arena* arena = Arena::Acquire(kArenaRingBytes)) arenas.push_back(arena);
  EXPECT_EQ(arenas.size(), kMaxArenas - 1);
  for (Arena* arena : arenas) EXPECT_LT(arena->number(), kMaxArenas);
  Arena::Release(arenas.back());
  Arena* const again = Arena::Acquire(kArenaRingBytes);
  EXPECT_EQ(again, arenas.back());
  for (Arena* arena : arenas) Arena::Release(arena);
}

}  // namespace
}  // namespace strobe::internal
