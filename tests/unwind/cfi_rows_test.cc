#include "../../src/unwind/cfi_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

using internal::CfiEntry;
using internal::CfiRows;
using internal::DwarfReader;
using internal::FdeRange;
using internal::ReadFdeRange;

CfiEntry Entry() {
  CfiEntry entry;
  entry.data_alignment = -8;
  entry.return_register = kRip;
  entry.initial.cfa_register = kRsp;
  entry.initial.cfa_offset = 8;
  entry.initial.ra = {.kind = internal::CfiValue::Kind::kOffset, .number = -8, .expression = {}};
  return entry;
}

// An FDE behind its CIE's number, without augmentation.
Bytes Fde(Address begin, Address length, const Bytes& program = {}) {
  return Join({Fixed(begin), Fixed(length), program});
}

class CfiRowsTest : public ::testing::Test {
 protected:
  CfiRowsTest() { Restart(kText, kTextLimit); }

  void Restart(Address first, Address limit) {
    rows_.emplace(Architecture::kX86_64, kText, kTextLimit, first, limit);
  }
  void Add(const Bytes& fde) { rows_->Add(entry_, DwarfReader(fde, 0)); }
  CompiledTable Take() { return CompiledTable(rows_->Take()); }

  CfiEntry entry_ = Entry();
  std::optional<CfiRows> rows_;
};

TEST(FdeRangeTest, IsInTheEncodingOfTheCie) {
  CfiEntry entry = Entry();
  entry.pointer_encoding = 0x1B;
  entry.has_augmentation_data = true;
  const Bytes body =
      Join({Fixed(std::int32_t{-0x10}), Fixed(std::int32_t{0x40}), Block({1, 2}), {0x55}});
  DwarfReader reader(body, 0x1000);
  FdeRange range;
  ASSERT_TRUE(ReadFdeRange(entry, reader, range));
  EXPECT_EQ(range.begin, 0xFF0u);
  EXPECT_EQ(range.length, 0x40u) << "a length has no base";
  EXPECT_EQ(reader.Read<std::uint8_t>(), 0x55) << "the instructions follow";
}

TEST(FdeRangeTest, EveryBeginningIsBroken) {
  CfiEntry entry = Entry();
  entry.has_augmentation_data = true;
  const Bytes body = Join({Fde(kText, 0x40), Block({1, 2})});
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
    DwarfReader reader(std::span<const std::uint8_t>(body).first(bytes), 0);
    FdeRange range;
    EXPECT_FALSE(ReadFdeRange(entry, reader, range)) << bytes;
  }
}

TEST_F(CfiRowsTest, AFunctionsRowsEndWithTheFunction) {
  Add(Fde(kText + 0x10, 0x20, Join({Advance(4), DefCfaOffset(16)})));
  EXPECT_FALSE(rows_->is_full());
  const CompiledTable table = Take();
  EXPECT_EQ(table.At(0), UnwindRule::Unknown());
  EXPECT_EQ(table.At(0x10), FromSp(1));
  EXPECT_EQ(table.At(0x14), FromSp(2));
  EXPECT_EQ(table.At(0x2F), FromSp(2));
  EXPECT_EQ(table.At(0x30), UnwindRule::Unknown());
  EXPECT_EQ(table.statistics.fdes, 1u);
  EXPECT_EQ(table.statistics.rows, 2u);
  EXPECT_EQ(table.statistics.broken_entries, 0u);
}

TEST_F(CfiRowsTest, FunctionsMayComeInAnyOrder) {
  Add(Fde(kText + 0x40, 0x10, DefCfaOffset(24)));
  Add(Fde(kText, 0x10));
  Add(Fde(kText + 0x10, 0x30, DefCfaOffset(16)));
  const CompiledTable table = Take();
  EXPECT_EQ(table.At(0), FromSp(1));
  EXPECT_EQ(table.At(0x10), FromSp(2));
  EXPECT_EQ(table.At(0x3F), FromSp(2));
  EXPECT_EQ(table.At(0x40), FromSp(3));
  EXPECT_EQ(table.At(0x50), UnwindRule::Unknown());
}

TEST_F(CfiRowsTest, OfFunctionsThatOverlapTheLaterOneCounts) {
  Add(Fde(kText + 0x20, 0x20, DefCfaOffset(16)));
  Add(Fde(kText, 0x30));
  const CompiledTable table = Take();
  EXPECT_EQ(table.At(0x1F), FromSp(1));
  EXPECT_EQ(table.At(0x20), FromSp(2));
  EXPECT_EQ(table.At(0x3F), FromSp(2));
  EXPECT_EQ(table.At(0x40), UnwindRule::Unknown());
}

TEST_F(CfiRowsTest, FunctionsOutsideOfTheTextAreIgnored) {
  Add(Fde(0, 0x10));
  Add(Fde(kText - 8, 0x10));
  Add(Fde(kTextLimit, 0x10));
  Add(Fde(kTextLimit - 8, 0x10));
  Add(Fde(kText, ~Address{0}));
  Add(Fde(kText, 0));
  const CompiledTable table = Take();
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(table.statistics.fdes, 0u);
  EXPECT_EQ(table.statistics.broken_entries, 0u);
}

TEST_F(CfiRowsTest, ARangeHasTheRowsInForceInIt) {
  Restart(kText + 0x100, kText + 0x200);
  Add(Fde(kText + 0xF0, 0x20, Join({DefCfaOffset(16), Advance(8), DefCfaOffset(24)})));
  Add(Fde(kText + 0x1F0, 0x40, Join({Advance(0x18), DefCfaOffset(32)})));
  Add(Fde(kText, 0x100));
  Add(Fde(kText + 0x200, 0x100));
  const CompiledTable table = Take();
  EXPECT_EQ(table.At(0), FromSp(3)) << "begins before the range, and is in force at its start";
  EXPECT_EQ(table.At(0x0F), FromSp(3));
  EXPECT_EQ(table.At(0x10), UnwindRule::Unknown());
  EXPECT_EQ(table.At(0xF0), FromSp(1));
  EXPECT_EQ(table.rows.back().offset, 0x100u) << "nothing is said of code behind the range";
  EXPECT_EQ(table.statistics.fdes, 1u) << "a function counts where it begins";
  EXPECT_EQ(table.statistics.rows, 1u);
}

TEST_F(CfiRowsTest, ABrokenFunctionKeepsTheRowsThatAreSure) {
  Add(Fde(kText, 0x40, Join({Advance(8), DefCfaOffset(16), Advance(8), {0x3F}})));
  const CompiledTable table = Take();
  EXPECT_EQ(table.At(0), FromSp(1));
  EXPECT_EQ(table.SpecialAt(8).cfa, SpecialRule::Cfa::kLost) << "the last row cannot be trusted";
  EXPECT_EQ(table.statistics.broken_entries, 1u);
}

TEST_F(CfiRowsTest, BrokenFunctionsHaveNoRule) {
  Add(Fde(kText, 0x40, {0x3F}));
  Add({1, 2, 3});
  rows_->AddBroken(2);
  const CompiledTable table = Take();
  EXPECT_EQ(table.SpecialAt(0).cfa, SpecialRule::Cfa::kLost);
  EXPECT_EQ(table.statistics.broken_entries, 4u);
}

TEST_F(CfiRowsTest, CountsRowsThatNoRuleExpresses) {
  Add(Fde(kText, 0x40, Join({DefCfaExpression({0x96}), Advance(8), DefCfa(kRsp, 8)})));
  const CompiledTable table = Take();
  EXPECT_EQ(table.SpecialAt(0).cfa, SpecialRule::Cfa::kLost);
  EXPECT_EQ(table.At(8), FromSp(1));
  EXPECT_EQ(table.statistics.rows, 2u);
  EXPECT_EQ(table.statistics.unknown_rows, 1u);
}

TEST_F(CfiRowsTest, LocationsOutsideOfTheFunctionMakeNoRow) {
  Add(Fde(kText + 0x100, 0x10,
          Join({SetLocation(kText), DefCfaOffset(16), SetLocation(kText + 0x108), DefCfaOffset(24),
                SetLocation(kText + 0x200), DefCfaOffset(32)})));
  const CompiledTable table = Take();
  EXPECT_EQ(table.At(0), UnwindRule::Unknown());
  EXPECT_EQ(table.At(0x100), FromSp(1));
  EXPECT_EQ(table.At(0x108), FromSp(3));
  EXPECT_EQ(table.At(0x110), UnwindRule::Unknown());
  EXPECT_EQ(table.At(0x200), UnwindRule::Unknown());
}

TEST_F(CfiRowsTest, SaysWhereTheSpecialRegisterIs) {
  Add(Fde(kText, 0x40, Join({Advance(8), Offset(kRbx, 3)})));
  const CompiledTable table = Take();
  EXPECT_EQ(table.table.FindSpecialRegister(0),
            (SavedRegister{.where = SavedRegister::kUnchanged}));
  EXPECT_EQ(table.table.FindSpecialRegister(8),
            (SavedRegister{.where = SavedRegister::kFromCfa, .distance = -24}));
}

}  // namespace
}  // namespace strobe::testing
