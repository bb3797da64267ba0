#include "strobe/allocations/live_blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/core/stack_table.h"

namespace strobe::internal {
namespace {

const void* Block(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

// A table and its entries.
template <unsigned kBits = 16>
struct OwnBlocks : LiveBlocks<kBits> {
  OwnBlocks() { this->Use(entries); }
  LiveEntries<kBits> entries;
};

LiveBlock Sum(const auto& blocks) {
  LiveBlock sum;
  blocks.Visit([&](const LiveBlock& block, bool is_live, bool /*is_of_peak*/) {
    if (!is_live) return;
    sum.objects += block.objects;
    sum.bytes += block.bytes;
    sum.stack += block.stack;
  });
  return sum;
}

TEST(LiveBlocks, HasABlockUntilItIsRemoved) {
  const auto blocks = std::make_unique<OwnBlocks<>>();
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
  using Small = OwnBlocks<6>;
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
  const auto blocks = std::make_unique<OwnBlocks<6>>();
  for (std::uintptr_t address = 16; address <= 16 * 20; address += 16)
    ASSERT_TRUE(blocks->Add(Block(address), {1, 16, 0}));
  blocks->Clear();
  EXPECT_EQ(Sum(*blocks), LiveBlock());
  for (std::uintptr_t address = 16; address <= 16 * 20; address += 16)
    EXPECT_FALSE(blocks->MayHold(Block(address)));
}

// Addresses as an allocator gives them out: apart by random multiples of 16.
std::vector<std::uintptr_t> RandomAddresses(std::size_t count, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::uintptr_t> addresses;
  std::uintptr_t address = 0x7F0000000000;
  for (std::size_t i = 0; i < count; ++i)
    addresses.push_back(address += 16 * (1 + random() % 65'536));
  return addresses;
}

TEST(LiveBlocks, HoldsSoManyBlocksThroughAllLevelsOfTheFilter) {
  using Blocks = OwnBlocks<>;
  const auto blocks = std::make_unique<Blocks>();
  const std::vector<std::uintptr_t> addresses = RandomAddresses(Blocks::kEntries + 1);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < Blocks::kEntries; ++i)
      ASSERT_TRUE(blocks->Add(Block(addresses[i]), {1, 16, 5})) << i;
    EXPECT_FALSE(blocks->Add(Block(addresses.back()), {1, 16, 5}));
    std::size_t missed = 0;
    for (std::size_t i = 0; i < Blocks::kEntries; ++i) {
      if (!blocks->MayHold(Block(addresses[i]))) ++missed;
      if (!blocks->Remove(Block(addresses[i]))) ++missed;
    }
    EXPECT_EQ(missed, 0U);
    for (const std::uintptr_t address : addresses) ASSERT_FALSE(blocks->MayHold(Block(address)));
  }
  EXPECT_EQ(blocks->refused(), 2U);
}

TEST(LiveBlocks, MostOtherBlocksAreNotInTheFilter) {
  const std::vector<std::uintptr_t> addresses = RandomAddresses(80'000);
  const std::vector<std::uintptr_t> others = RandomAddresses(80'000, 2);
  const auto blocks = std::make_unique<OwnBlocks<>>();
  std::size_t added = 0;
  for (const std::size_t count : {1000U, 3500U, 10'000U, 40'000U, 65'000U}) {
    while (added < count) ASSERT_TRUE(blocks->Add(Block(addresses[added++]), {1, 16, 0}));
    std::size_t held = 0;
    for (const std::uintptr_t address : others) held += blocks->MayHold(Block(address)) ? 1 : 0;
    EXPECT_LT(held, others.size() * (count <= 1000 ? 8 : 40) / 100) << count;
  }
}

// As large blocks of the C library, each in a mapping of its own.
TEST(LiveBlocks, HoldsBlocksThatLieInTheirPagesAlike) {
  const auto blocks = std::make_unique<OwnBlocks<>>();
  const auto address_of = [](std::uintptr_t i) { return 0x7F0000000010 + i * 0x81000; };
  for (std::uintptr_t i = 0; i < 30'000; ++i)
    ASSERT_TRUE(blocks->Add(Block(address_of(i)), {1, 0x80000, 0})) << i;
  for (std::uintptr_t i = 0; i < 30'000; ++i) {
    ASSERT_TRUE(blocks->MayHold(Block(address_of(i))));
    ASSERT_TRUE(blocks->Remove(Block(address_of(i))));
    ASSERT_FALSE(blocks->Remove(Block(address_of(i))));
  }
}

// The bits of the addresses that the filter looks at are all the same.
TEST(LiveBlocks, RefusesBeyondWhatAHomeOfItsFilterCounts) {
  const auto blocks = std::make_unique<OwnBlocks<>>();
  const auto address_of = [](std::uintptr_t i) { return 0x1000 + (i << 40); };
  std::uintptr_t added = 0;
  while (added < 1000 && blocks->Add(Block(address_of(added)), {1, 16, 0})) ++added;
  EXPECT_EQ(added, 80U);
  for (std::uintptr_t i = 0; i < added; ++i) EXPECT_TRUE(blocks->Remove(Block(address_of(i))));
  EXPECT_FALSE(blocks->MayHold(Block(address_of(0))));
  EXPECT_TRUE(blocks->Add(Block(address_of(0)), {1, 16, 0}));
}

TEST(LiveBlocks, KeepsLargeAmounts) {
  const auto blocks = std::make_unique<OwnBlocks<>>();
  const LiveBlock large{LiveBlocks<>::kMaxObjects, INT64_MAX, (1 << 17)};
  ASSERT_TRUE(blocks->Add(Block(0x1000), large));
  EXPECT_FALSE(blocks->Add(Block(0x2000), {LiveBlocks<>::kMaxObjects + 1, 1, 0}));
  EXPECT_EQ(Sum(*blocks), large);
  EXPECT_EQ(blocks->Remove(Block(0x1000)), large);
}

// Zero pages are those that were not touched.
TEST(LiveBlocks, TakesAtMost80BytesABlockWithItsStacks) {
  struct Tables {
    OwnBlocks<> blocks;
    StackTable<> stacks;
  };
  constexpr std::size_t kPageBytes = 4096;
  const std::vector<std::uintptr_t> addresses = RandomAddresses(65'536);
  for (const std::size_t count : {1000U, 10'000U, 30'000U, 40'000U, 65'536U}) {
    const auto tables = std::make_unique<Tables>();
    std::vector<Address> frames;
    for (std::size_t i = 0; i < count; ++i) {
      if (frames.size() == 64) frames.clear();
      frames.insert(frames.begin(), 0x400000 + 32 * frames.size());
      const std::uint32_t stack = tables->stacks.Add(frames, StackEnd::kComplete);
      ASSERT_TRUE(tables->blocks.Add(Block(addresses[i]), {1, 16, stack}));
    }
    const auto* const bytes = reinterpret_cast<const char*>(tables.get());
    std::size_t touched = 0;
    for (std::size_t at = 0; at < sizeof(Tables); at += kPageBytes) {
      const std::string_view page(bytes + at, std::min(kPageBytes, sizeof(Tables) - at));
      if (page.find_first_not_of('\0') != page.npos) touched += kPageBytes;
    }
    EXPECT_LE(touched, 80 * count) << count << " blocks";
  }
}

// Each thread adds blocks that another one removes, while a third one looks.
TEST(LiveBlocks, LosesNothingBetweenThreads) {
  constexpr int kPairs = 3;
  constexpr int kRounds = 100;
  constexpr int kBlocks = 200;
  const auto blocks = std::make_unique<OwnBlocks<12>>();
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
      blocks->Visit([&](const LiveBlock& block, bool /*is_live*/, bool /*is_of_peak*/) {
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
