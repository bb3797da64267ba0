#include "strobe/allocations/live_blocks.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

const void* Block(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

LiveBlock Sum(const auto& blocks) {
  LiveBlock sum;
  blocks.Visit([&](const LiveBlock& block) {
    sum.objects += block.objects;
    sum.bytes += block.bytes;
    sum.stack += block.stack;
  });
  return sum;
}

TEST(LiveBlocks, HasABlockUntilItIsRemoved) {
  const auto blocks = std::make_unique<LiveBlocks<>>();
  EXPECT_FALSE(blocks->MayHold(Block(0x1000)));
  EXPECT_FALSE(blocks->MayHold(nullptr));
  ASSERT_TRUE(blocks->Add(Block(0x1000), {3, 300, 7}));
  EXPECT_TRUE(blocks->MayHold(Block(0x1000)));
  EXPECT_EQ(Sum(*blocks), (LiveBlock{3, 300, 7}));
  EXPECT_EQ(blocks->Remove(Block(0x2000)), std::nullopt);
  EXPECT_EQ(blocks->Remove(Block(0x1000)), (LiveBlock{3, 300, 7}));
  EXPECT_EQ(blocks->Remove(Block(0x1000)), std::nullopt);
  EXPECT_FALSE(blocks->MayHold(Block(0x1000)));
  EXPECT_EQ(Sum(*blocks), LiveBlock());
}

TEST(LiveBlocks, RefusesAndCountsWhatDoesNotFit) {
  using Small = LiveBlocks<6>;
  const auto blocks = std::make_unique<Small>();
  std::vector<std::uintptr_t> added;
  std::uint64_t refused = 0;
  for (std::uintptr_t address = 16; address <= 16 * 200; address += 16) {
    if (blocks->Add(Block(address), {1, 16, 0})) {
      added.push_back(address);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(added.size(), Small::kEntries / 2);
  EXPECT_LE(added.size(), Small::kEntries);
  EXPECT_EQ(blocks->refused(), refused);
  EXPECT_EQ(Sum(*blocks).objects, static_cast<std::int64_t>(added.size()));
  EXPECT_EQ(blocks->Remove(nullptr), std::nullopt) << "it has a home, too";
  for (const std::uintptr_t address : added) {
    EXPECT_TRUE(blocks->MayHold(Block(address)));
    EXPECT_TRUE(blocks->Remove(Block(address)));
    EXPECT_EQ(blocks->Remove(nullptr), std::nullopt);
  }
  EXPECT_EQ(Sum(*blocks), LiveBlock());
  for (std::uintptr_t address = 16; address <= 16 * 200; address += 16)
    EXPECT_FALSE(blocks->MayHold(Block(address)));
}

TEST(LiveBlocks, IsEmptyAfterClear) {
  const auto blocks = std::make_unique<LiveBlocks<6>>();
  for (std::uintptr_t address = 16; address <= 16 * 20; address += 16)
    ASSERT_TRUE(blocks->Add(Block(address), {1, 16, 0}));
  blocks->Clear();
  EXPECT_EQ(Sum(*blocks), LiveBlock());
  for (std::uintptr_t address = 16; address <= 16 * 20; address += 16)
    EXPECT_FALSE(blocks->MayHold(Block(address)));
}

// Each thread adds blocks that another one removes, while a third one looks.
TEST(LiveBlocks, LosesNothingBetweenThreads) {
  constexpr int kPairs = 3;
  constexpr int kRounds = 100;
  constexpr int kBlocks = 200;
  const auto blocks = std::make_unique<LiveBlocks<12>>();
  const auto address_of = [](int pair, int i) {
    return static_cast<std::uintptr_t>(i * kPairs + pair + 1) * 16;
  };
  std::atomic<int> wrong{0};
  std::atomic<bool> is_over{false};
  std::array<std::atomic<bool>, kPairs> is_passed{};
  std::vector<std::thread> threads;
  for (int pair = 0; pair < kPairs; ++pair) {
    threads.emplace_back([&, pair] {
      for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kBlocks; ++i) {
          const std::uintptr_t address = address_of(pair, i);
          if (!blocks->Add(Block(address), {1, static_cast<std::int64_t>(address), 0})) ++wrong;
        }
        is_passed[pair] = true;
        while (is_passed[pair]) std::this_thread::yield();
      }
    });
    threads.emplace_back([&, pair] {
      for (int round = 0; round < kRounds; ++round) {
        while (!is_passed[pair]) std::this_thread::yield();
        for (int i = 0; i < kBlocks; ++i) {
          const std::uintptr_t address = address_of(pair, i);
          const std::optional<LiveBlock> block = blocks->Remove(Block(address));
          if (!block || block->bytes != static_cast<std::int64_t>(address)) ++wrong;
        }
        is_passed[pair] = false;
      }
    });
  }
  std::thread visitor([&] {
    while (!is_over)
      blocks->Visit([&](const LiveBlock& block) {
        if (block.objects != 1 || block.bytes % 16 != 0 || block.bytes == 0) ++wrong;
      });
  });
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  visitor.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Sum(*blocks), LiveBlock());
}

}  // namespace
}  // namespace strobe::internal
