#include "strobe/unwind/unwind_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

// What the rows say at `offset`, by looking at all of them.
UnwindRule Naive(const std::vector<UnwindRow>& rows, std::uint32_t offset) {
  UnwindRule rule;
  for (const UnwindRow& row : rows) {
    if (row.offset > offset) break;
    rule = row.rule;
  }
  return rule;
}

TEST(UnwindTable, WithoutRowsEverythingIsUnknown) {
  EXPECT_EQ(UnwindTable().Find(0), UnwindRule::Unknown());
  EXPECT_EQ(UnwindTable().Special(UnwindRule::Unknown()), SpecialRule());
  const UnwindTable table(100, {}, {SpecialRule()});
  for (const std::uint32_t offset : {0u, 99u, 100u, 0xFFFFFFFFu})
    EXPECT_EQ(table.Find(offset), UnwindRule::Unknown());
  EXPECT_EQ(table.Special(UnwindRule::Unknown()), SpecialRule());
}

TEST(UnwindTable, WhatLiesBeforeTheFirstRowAndBehindTheTextIsUnknown) {
  const UnwindTable table(0x1000, {{0x10, FromSp(1)}, {0x20, FromSp(2)}}, {SpecialRule()});
  EXPECT_EQ(table.Find(0xF), UnwindRule::Unknown());
  EXPECT_EQ(table.Find(0x10), FromSp(1));
  EXPECT_EQ(table.Find(0x1F), FromSp(1));
  EXPECT_EQ(table.Find(0xFFF), FromSp(2));
  EXPECT_EQ(table.Find(0x80000000), UnwindRule::Unknown());
}

TEST(UnwindTable, TheLastOfSeveralRowsOfOneAddressHolds) {
  const UnwindTable table(
      0x100, {{0, FromSp(1)}, {0, FromSp(2)}, {8, FromSp(3)}, {8, FromSp(2)}, {9, FromSp(4)}},
      {SpecialRule()});
  EXPECT_EQ(table.Find(0), FromSp(2));
  EXPECT_EQ(table.Find(8), FromSp(2));
  EXPECT_EQ(table.Find(9), FromSp(4));
}

// At every address, for tables from empty ones to such that every instruction has its row, in every
// mixture.
TEST(UnwindTable, SaysWhatItsRowsSay) {
  std::mt19937 random(20260301);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t text_bytes = 1 + random() % 60000;
    std::vector<UnwindRow> rows;
    std::uint32_t offset = 0;
    while (offset < text_bytes) {
      const bool is_dense = random() % 3 == 0;
      for (std::uint32_t i = random() % 100; i > 0 && offset < text_bytes; --i) {
        rows.push_back(
            {offset, random() % 8 == 0 ? UnwindRule::Unknown() : FromSp(1 + random() % 40)});
        offset += is_dense ? random() % 2 : 1 + random() % 300;
      }
      offset += random() % 3000;
    }
    const UnwindTable table(text_bytes, rows, {SpecialRule()});
    std::size_t row = 0;
    UnwindRule expected;
    for (std::uint32_t at = 0; at < text_bytes; ++at) {
      for (; row < rows.size() && rows[row].offset <= at; ++row) expected = rows[row].rule;
      ASSERT_EQ(table.Find(at), expected) << "round " << round << ", offset " << at;
    }
    ASSERT_EQ(expected, Naive(rows, text_bytes - 1));
  }
}

TEST(UnwindTable, MoreRulesThanALineCanNameAreUnknownNotWrong) {
  std::vector<UnwindRow> rows;
  for (std::uint32_t i = 0; i < 70000; ++i)
    rows.push_back({i * 4, FromSp(1 + i % 8000, 1, i / 8000)});
  const UnwindTable table(70000 * 4, rows, {SpecialRule()});
  std::size_t exact = 0;
  for (const UnwindRow& row : rows) {
    const UnwindRule found = table.Find(row.offset);
    ASSERT_TRUE(found == row.rule || found == UnwindRule::Unknown());
    exact += found == row.rule ? 1 : 0;
  }
  EXPECT_GT(exact, 65000u);
}

// Another process may have the block elsewhere.
TEST(UnwindTable, ACopyOfTheBlockSaysTheSame) {
  std::vector<UnwindRow> rows;
  for (std::uint32_t i = 0; i < 3000; ++i) rows.push_back({i * (i % 3 + 1), FromSp(i % 500), {}});
  std::ranges::sort(rows, {}, &UnwindRow::offset);
  const UnwindTable table(16 * 1024, rows, {SpecialRule()});
  struct alignas(kCacheLineBytes) Bytes {
    std::byte bytes[kCacheLineBytes];
  };
  const std::size_t size = table.block().size();
  auto elsewhere = std::make_unique<Bytes[]>(size / sizeof(Bytes) + 1);
  std::memcpy(elsewhere.get(), table.block().data(), size);
  const std::shared_ptr<Bytes[]> owner(std::move(elsewhere));
  const UnwindTable copy(
      table, std::shared_ptr<const std::byte>(owner, reinterpret_cast<std::byte*>(owner.get())));
  EXPECT_NE(copy.block().data(), table.block().data());
  for (std::uint32_t offset = 0; offset < 17 * 1024; ++offset) {
    ASSERT_EQ(copy.Find(offset), table.Find(offset)) << offset;
    ASSERT_EQ(copy.FindSpecialRegister(offset), table.FindSpecialRegister(offset)) << offset;
  }
}

TEST(UnwindTable, CostsLittleWhereThereIsLittle) {
  const UnwindTable table(1 << 20, {{0, FromSp(1)}}, {SpecialRule()});
  EXPECT_LT(table.memory_bytes(), (1u << 20) / 15);
  EXPECT_EQ(table.rule_count(), 2u) << "unknown, and the one";
}

TEST(UnwindModules, FindsTheEntryThatHoldsAnAddress) {
  const auto table = std::make_shared<UnwindTable>();
  const UnwindModules modules(
      {{0x5000, 0x6000, table}, {0x1000, 0x2000, table}, {0x2000, 0x3000, table}});
  EXPECT_EQ(modules.Find(0xFFF), nullptr);
  EXPECT_EQ(modules.Find(0x1000)->start, 0x1000u);
  EXPECT_EQ(modules.Find(0x1FFF)->start, 0x1000u);
  EXPECT_EQ(modules.Find(0x2000)->start, 0x2000u);
  EXPECT_EQ(modules.Find(0x3000), nullptr);
  EXPECT_EQ(modules.Find(0x5FFF)->start, 0x5000u);
  EXPECT_EQ(modules.Find(0x6000), nullptr);
  EXPECT_EQ(modules.Find(~Address{0}), nullptr);
  EXPECT_EQ(UnwindModules().Find(0), nullptr);
}

}  // namespace
}  // namespace strobe::testing
