#include "strobe/runtime/threads/thread_table.h"

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
using Blocks = ThreadTable<testing::ManualTraits>;
using Thread = Blocks::Thread;

constexpr std::size_t kTableRingBytes = 4096;

std::vector<Thread*> Marked(Blocks& blocks) {
  std::vector<Thread*> threads;
  blocks.VisitMarked([&](Thread& thread) { threads.push_back(&thread); });
  return threads;
}

TEST(ThreadTable, EachThreadHasAChannelOfItsOwn) {
  Blocks blocks(kTableRingBytes);
  EXPECT_EQ(blocks.arena(), nullptr);
  ASSERT_TRUE(blocks.Open().ok());
  EXPECT_EQ(blocks.size(), 0u);
  ASSERT_TRUE(blocks.Grow().ok());
  Thread* const first = &blocks.Grow()->front();
  EXPECT_EQ(blocks.size(), 2 * Blocks::kBlockThreads);
  std::set<const void*> channels;
  blocks.VisitAll([&](Thread& thread) {
    EXPECT_EQ(blocks.arena()->Find(thread.token->index), thread.channel);
    channels.insert(thread.channel);
  });
  EXPECT_EQ(channels.size(), blocks.size());
  EXPECT_EQ(first->token->index, Blocks::kBlockThreads) << "the second block's";
}

TEST(ThreadTable, OnlyMarkedThreadsAreVisitedAndOnlyOnce) {
  Blocks blocks(kTableRingBytes);
  ASSERT_TRUE(blocks.Open().ok());
  ASSERT_TRUE(blocks.Grow().ok());
  const auto threads = *blocks.Grow();
  blocks.arena()->Mark(*threads[63].channel);
  blocks.arena()->Mark(*threads[5].channel);
  EXPECT_THAT(Marked(blocks), ElementsAre(&threads[5], &threads[63]));
  EXPECT_THAT(Marked(blocks), ElementsAre());
}

TEST(ThreadTable, AMarkOfAnEarlierOwnerIsNoThread) {
  {
    Blocks earlier(kTableRingBytes);
    ASSERT_TRUE(earlier.Open().ok());
    earlier.arena()->Mark(*earlier.Grow()->front().channel);
  }
  Blocks blocks(kTableRingBytes);
  ASSERT_TRUE(blocks.Open().ok());
  EXPECT_THAT(Marked(blocks), ElementsAre());
}

TEST(ThreadTable, ACaptureInAnyThreadIsSeen) {
  Blocks blocks(kTableRingBytes);
  ASSERT_TRUE(blocks.Open().ok());
  Thread& thread = blocks.Grow()->back();
  EXPECT_FALSE(blocks.IsCapturing());
  thread.channel->is_capturing = true;
  EXPECT_TRUE(blocks.IsCapturing());
  thread.channel->is_capturing = false;
}

TEST(ThreadTable, ThereAreAsManyAsThereAreArenas) {
  std::vector<std::unique_ptr<Blocks>> all;
  for (std::size_t i = 0; i < kMaxArenas; ++i) {
    all.push_back(std::make_unique<Blocks>(kTableRingBytes));
    ASSERT_TRUE(all.back()->Open().ok());
  }
  Blocks one_too_many(kTableRingBytes);
  EXPECT_EQ(one_too_many.Open().code(), absl::StatusCode::kResourceExhausted);
  all.pop_back();
  EXPECT_TRUE(one_too_many.Open().ok());
}

}  // namespace
}  // namespace strobe::internal
