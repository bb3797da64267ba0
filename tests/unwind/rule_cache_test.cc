#include "strobe/unwind/rule_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace strobe::testing {
namespace {

UnwindRule RuleOf(Address pc) {
  const auto kind = pc % 2 == 0 ? UnwindRule::Kind::kFromSp : UnwindRule::Kind::kFromFp;
  return UnwindRule::Frame(kind, static_cast<std::uint32_t>(pc % UnwindRule::kMaxCfaWords),
                           static_cast<std::uint32_t>(pc % 127) + 1,
                           static_cast<std::uint32_t>(pc % 251));
}

TEST(RuleCacheTest, WhatWasNeverAddedIsUnknown) {
  const auto cache = std::make_unique<RuleCache>();
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i)
    ASSERT_EQ(cache->Find(random() % (Address{1} << 48)), UnwindRule::Unknown());
  for (Address pc = 0; pc < 100'000; ++pc) ASSERT_EQ(cache->Find(pc), UnwindRule::Unknown());
}

TEST(RuleCacheTest, FindsTheRuleOfThatAddressOrNone) {
  const auto cache = std::make_unique<RuleCache>();
  std::mt19937_64 random(2);
  std::vector<Address> added;
  for (int i = 0; i < 200'000; ++i) {
    // Close to one another, so that places are fought for, and all over the address space.
    const Address pc =
        i % 2 == 0 ? 0x7F0000000000 + random() % 1'000'000 : random() % (Address{1} << 48);
    cache->Add(pc, RuleOf(pc));
    ASSERT_EQ(cache->Find(pc), RuleOf(pc));
    added.push_back(pc);
    const Address other =
        added[random() % added.size()] ^ (random() % 4 == 0 ? Address{1} << random() % 48 : 0);
    const UnwindRule found = cache->Find(other);
    ASSERT_TRUE(found == UnwindRule::Unknown() || found == RuleOf(other)) << std::hex << other;
  }
}

TEST(RuleCacheTest, KeepsTheCallersOfAProgramsHotCode) {
  const auto cache = std::make_unique<RuleCache>();
  constexpr Address kText = 0x555555554000;
  for (Address pc = kText; pc < kText + 4000 * 64; pc += 64) cache->Add(pc, RuleOf(pc));
  int kept = 0;
  for (Address pc = kText; pc < kText + 4000 * 64; pc += 64)
    kept += cache->Find(pc) == RuleOf(pc) ? 1 : 0;
  EXPECT_EQ(kept, 4000);
}

TEST(RuleCacheTest, ARuleThatHasNoRoomIsLookedUpEachTime) {
  const auto cache = std::make_unique<RuleCache>();
  cache->Add(0x400000, UnwindRule::Frame(UnwindRule::Kind::kFromSp, 300, 255, 0));
  EXPECT_EQ(cache->Find(0x400000), UnwindRule::Unknown());
}

TEST(RuleCacheTest, DoesNotKeepWhatItCannotTellApart) {
  const auto cache = std::make_unique<RuleCache>();
  const Address beyond = Address{1} << RuleCache::kAddressBits;
  const UnwindRule rule = UnwindRule::Frame(UnwindRule::Kind::kFromSp, 2, 1, 0);
  cache->Add(beyond + 0x1234, rule);
  EXPECT_EQ(cache->Find(beyond + 0x1234), UnwindRule::Unknown());
  EXPECT_EQ(cache->Find(0x1234), UnwindRule::Unknown());
  cache->Add(0x1234, rule);
  EXPECT_EQ(cache->Find(0x1234), rule);
  EXPECT_EQ(cache->Find(beyond + 0x1234), UnwindRule::Unknown());
}

TEST(RuleCacheTest, OneThatStaysEmptyKeepsNothing) {
  const auto cache = std::make_unique<RuleCache>(RuleCache::StaysEmpty());
  cache->Add(0x1234, RuleOf(0x1234));
  EXPECT_EQ(cache->Find(0x1234), UnwindRule::Unknown());
}

TEST(RuleCacheTest, ThreadsMayShareIt) {
  const auto cache = std::make_unique<RuleCache>();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 50'000; ++i) {
        const Address pc =
            0x400000 + random() % 64 * 32768 + random() % 16;  // few places, many addresses
        const UnwindRule found = cache->Find(pc);
        if (found != UnwindRule::Unknown() && found != RuleOf(pc)) ++wrong;
        cache->Add(pc, RuleOf(pc));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace strobe::testing
