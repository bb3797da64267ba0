#include "strobe/allocations/live_entries.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

template <unsigned kBits>
void Free(LiveEntries<kBits>& entries, std::uint32_t number) {
  entries[number].address.store(0);
  static_cast<void>(entries.Remove(number));
}

struct Sums {
  std::int64_t live = 0;
  std::int64_t peak = 0;

  friend bool operator==(const Sums&, const Sums&) = default;
};
template <unsigned kBits>
Sums BytesOf(const LiveEntries<kBits>& entries) {
  Sums sums;
  entries.Visit([&](const LiveBlock& block, bool is_live, bool is_of_peak) {
    if (is_live) sums.live += block.bytes;
    if (is_of_peak) sums.peak += block.bytes;
  });
  return sums;
}

class LiveEntriesTest : public ::testing::Test {
 protected:
  using Entries = LiveEntries<6>;

  std::uint32_t Add(std::int64_t bytes) {
    const std::optional<std::uint32_t> number =
        entries_.Add(next_address_ += 16, {.objects = 1, .bytes = bytes, .birth_ns = bytes});
    EXPECT_TRUE(number.has_value());
    return number.value_or(0);
  }

  Entries entries_;
  std::uintptr_t next_address_ = 0x1000;
};

TEST_F(LiveEntriesTest, ThePeakIsWhatWasLiveWhenMostBytesWere) {
  EXPECT_EQ(BytesOf(entries_), (Sums{0, 0}));
  const std::uint32_t first = Add(100);
  const std::uint32_t second = Add(200);
  EXPECT_EQ(BytesOf(entries_), (Sums{300, 300}));
  Free(entries_, first);
  EXPECT_EQ(BytesOf(entries_), (Sums{200, 300}));
  const std::uint32_t third = Add(99);
  EXPECT_EQ(BytesOf(entries_), (Sums{299, 300})) << "the third is not of the peak";
  Free(entries_, third);
  Free(entries_, second);
  EXPECT_EQ(BytesOf(entries_), (Sums{0, 300}));
  Add(301);
  EXPECT_EQ(BytesOf(entries_), (Sums{301, 301}));
}

TEST_F(LiveEntriesTest, ABlockOfThePeakKeepsItsContent) {
  const LiveBlock block{.objects = 3, .bytes = 300, .stack = 7, .birth_ns = 12};
  const std::optional<std::uint32_t> number = entries_.Add(0x1000, block);
  ASSERT_TRUE(number.has_value());
  Free(entries_, *number);
  int seen = 0;
  entries_.Visit([&](const LiveBlock& content, bool is_live, bool is_of_peak) {
    ++seen;
    EXPECT_FALSE(is_live);
    EXPECT_TRUE(is_of_peak);
    EXPECT_EQ(content, block);
  });
  EXPECT_EQ(seen, 1);
}

TEST_F(LiveEntriesTest, ThePlacesOfEarlierPeaksAreUsedAgain) {
  for (int round = 0; round < 1000; ++round) {
    const std::uint32_t number = Add(100 + round);  // a peak each
    Free(entries_, number);
  }
  EXPECT_LE(entries_.used(), 3U);
  EXPECT_EQ(entries_.dropped(), 0U);
  EXPECT_EQ(BytesOf(entries_), (Sums{0, 1099}));
}

TEST_F(LiveEntriesTest, LiveBlocksDisplaceThoseOfThePeak) {
  std::vector<std::uint32_t> of_peak;
  for (std::size_t i = 0; i < Entries::kEntries; ++i) of_peak.push_back(Add(1000));
  EXPECT_FALSE(entries_.Add(0x10, {.objects = 1, .bytes = 1}).has_value()) << "all are live";
  for (const std::uint32_t number : of_peak) Free(entries_, number);
  EXPECT_EQ(BytesOf(entries_), (Sums{0, 63 * 1000})) << "one place is kept for what comes";
  for (int i = 0; i < 10; ++i) Add(1);
  EXPECT_EQ(BytesOf(entries_), (Sums{10, 54 * 1000}));
  EXPECT_EQ(entries_.dropped(), 10U);
  // What is left of the peak is less than it was: the next one need not be as large.
  for (int i = 0; i < 50; ++i) Add(1000);
  EXPECT_EQ(BytesOf(entries_), (Sums{50'010, 50'010}));
}

// Each takes the place of the one before, however few places there are.
TEST_F(LiveEntriesTest, FullEntriesAreFreedOneByOne) {
  std::vector<std::uint32_t> live;
  for (std::size_t i = 0; i < Entries::kEntries; ++i) live.push_back(Add(1000));
  for (std::uint32_t& number : live) {
    Free(entries_, number);
    number = Add(1000);
  }
  EXPECT_EQ(BytesOf(entries_).live, 64 * 1000);
}

TEST_F(LiveEntriesTest, ForgetPeakBeginsAnother) {
  Free(entries_, Add(500));
  const std::uint32_t kept = Add(10);
  entries_.ForgetPeak();
  EXPECT_EQ(BytesOf(entries_).live, 10);
  Free(entries_, Add(20));
  EXPECT_EQ(BytesOf(entries_), (Sums{10, 30}));
  Free(entries_, kept);
  entries_.Clear();
  EXPECT_EQ(BytesOf(entries_), (Sums{0, 0}));
  Add(1);
  EXPECT_EQ(BytesOf(entries_), (Sums{1, 1}));
}

// Against a copy of the live set at each maximum.
TEST_F(LiveEntriesTest, IsEqualToACopyOfTheLiveSet) {
  const auto entries = std::make_unique<LiveEntries<12>>();
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> live;
  std::multiset<std::int64_t> now;
  std::multiset<std::int64_t> at_peak;
  std::int64_t sum = 0;
  std::int64_t max = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (live.empty() || random() % 1000 < (step % 4000 < 2000 ? 520U : 480U)) {
      const auto bytes = static_cast<std::int64_t>(1 + random() % 1000);
      live.push_back(*entries->Add(16 + 16 * random() % 100'000, {.objects = 1, .bytes = bytes}));
      now.insert(bytes);
      sum += bytes;
      if (sum > max) max = sum, at_peak = now;
    } else {
      std::swap(live[random() % live.size()], live.back());
      const std::int64_t bytes = (*entries)[live.back()].Read().bytes;
      Free(*entries, live.back());
      live.pop_back();
      now.erase(now.find(bytes));
      sum -= bytes;
    }
    if (step % 500 != 0) continue;
    std::multiset<std::int64_t> seen_live;
    std::multiset<std::int64_t> seen_peak;
    entries->Visit([&](const LiveBlock& block, bool is_live, bool is_of_peak) {
      if (is_live) seen_live.insert(block.bytes);
      if (is_of_peak) seen_peak.insert(block.bytes);
    });
    ASSERT_EQ(seen_live, now) << step;
    ASSERT_EQ(seen_peak, at_peak) << step;
  }
}

// While others come and go, blocks that live throughout are in each visit once.
TEST_F(LiveEntriesTest, ThreadsThatAllocateDisturbNoOther) {
  constexpr int kRounds = 20'000;
  const auto entries = std::make_unique<LiveEntries<8>>();
  for (std::uintptr_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(entries->Add(i * 16, {.objects = 1, .bytes = 1'000'000}).has_value());
  }
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 1; thread <= 3; ++thread) {
    threads.emplace_back([&entries, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const auto number = entries->Add(thread << 32, {.objects = 1, .bytes = 1 + round % 7});
        if (number) Free(*entries, *number);
      }
    });
  }
  for (int visit = 0; visit < 200; ++visit) {
    std::int64_t live = 0;
    std::int64_t peak = 0;
    entries->Visit([&](const LiveBlock& block, bool is_live, bool is_of_peak) {
      if (block.bytes != 1'000'000) return;
      live += is_live ? 1 : 0;
      peak += is_of_peak ? 1 : 0;
    });
    EXPECT_EQ(live, 10);
    EXPECT_EQ(peak, 10);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(BytesOf(*entries).live, 10'000'000);
}

}  // namespace
}  // namespace strobe::internal
