#include "strobe/core/number_index.h"

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Spreads as the hashes of the tables that use the index.
std::uint64_t HashOf(std::uint64_t key) {
  key *= 0x9E3779B97F4A7C15;
  return (key ^ key >> 32) * 0x9E3779B97F4A7C15;
}

TEST(NumberIndex, FindsANumberUntilItIsRemoved) {
  const auto index = std::make_unique<NumberIndex<16>>();
  const auto is_any = [](std::uint32_t) { return true; };
  EXPECT_FALSE(index->Find(HashOf(1), is_any));
  ASSERT_TRUE(index->Add(HashOf(1), 65'535));
  ASSERT_TRUE(index->Add(HashOf(2), 0));
  EXPECT_EQ(index->Find(HashOf(1), is_any), 65'535U);
  EXPECT_EQ(index->Find(HashOf(2), is_any), 0U);
  EXPECT_FALSE(index->Find(HashOf(3), is_any));
  index->Remove(HashOf(1), 65'535);
  EXPECT_FALSE(index->Find(HashOf(1), is_any));
  EXPECT_EQ(index->Find(HashOf(2), is_any), 0U);
  index->Clear();
  EXPECT_FALSE(index->Find(HashOf(2), is_any));
}

TEST(NumberIndex, AsksWhichOfTheNumbersWithOneHash) {
  const auto index = std::make_unique<NumberIndex<16>>();
  for (std::uint32_t number = 0; number < 3; ++number) ASSERT_TRUE(index->Add(HashOf(7), number));
  for (std::uint32_t number = 0; number < 3; ++number) {
    EXPECT_EQ(index->Find(HashOf(7), [&](std::uint32_t found) { return found == number; }), number);
    index->Remove(HashOf(7), number);
    EXPECT_FALSE(index->Find(HashOf(7), [&](std::uint32_t found) { return found == number; }));
  }
}

TEST(NumberIndex, HasRoomForAllNumbers) {
  constexpr std::uint32_t kNumbers = 1 << 16;
  const auto index = std::make_unique<NumberIndex<16>>();
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < kNumbers; ++i) ASSERT_TRUE(index->Add(HashOf(i), i)) << i;
    for (std::uint32_t i = 0; i < kNumbers; ++i)
      ASSERT_EQ(index->Find(HashOf(i), [i](std::uint32_t found) { return found == i; }), i);
    for (std::uint32_t i = 0; i < kNumbers; ++i) index->Remove(HashOf(i), i);
  }
  for (std::uint32_t i = 0; i < kNumbers; ++i)
    ASSERT_FALSE(index->Find(HashOf(i), [](std::uint32_t) { return true; }));
}

TEST(NumberIndex, RefusesWhatHasNoRoomNearItsHome) {
  const auto index = std::make_unique<NumberIndex<16>>();
  std::uint32_t added = 0;
  while (index->Add(0, added)) ++added;
  EXPECT_EQ(added, 4 * NumberIndex<16>::kProbes) << "of four tiers";
  EXPECT_FALSE(index->Add(1, added)) << "another hash of the same home";
  EXPECT_TRUE(index->Add(HashOf(1), added));
  for (std::uint32_t i = 0; i < added; ++i) index->Remove(0, i);
  EXPECT_FALSE(index->Find(0, [](std::uint32_t) { return true; }));
  EXPECT_TRUE(index->Add(0, 0));
}

// The threads' numbers have neighbouring homes.
TEST(NumberIndex, LosesNothingBetweenThreads) {
  const auto index = std::make_unique<NumberIndex<16>>();
  std::array<int, 4> wrong{};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < wrong.size(); ++thread) {
    threads.emplace_back([&, thread] {
      constexpr std::uint32_t kNumbers = 2000;
      const auto number_of = [thread](std::uint32_t i) { return i * 4 + thread; };
      for (int round = 0; round < 20; ++round) {
        for (std::uint32_t i = 0; i < kNumbers; ++i)
          wrong[thread] += index->Add(HashOf(number_of(i)), number_of(i)) ? 0 : 1;
        for (std::uint32_t i = 0; i < kNumbers; ++i) {
          const auto is_it = [&](std::uint32_t found) { return found == number_of(i); };
          wrong[thread] += index->Find(HashOf(number_of(i)), is_it) ? 0 : 1;
          index->Remove(HashOf(number_of(i)), number_of(i));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
  for (std::uint32_t i = 0; i < 8000; ++i)
    EXPECT_FALSE(index->Find(HashOf(i), [](std::uint32_t) { return true; }));
}

}  // namespace
}  // namespace strobe::internal
