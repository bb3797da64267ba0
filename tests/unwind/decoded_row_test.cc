#include "../../src/unwind/decoded/decoded_row.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace strobe::internal {
namespace {

constexpr FramePlace FromCfa(std::int32_t offset) { return {FramePlace::kCfa, offset}; }
constexpr FramePlace FromAnchor(std::int32_t offset) { return {FramePlace::kAnchor, offset}; }

// The row's special rule; that of unknown code if it has none.
SpecialRule SpecialRow(const DecodedFrame& frame) {
  std::vector<SpecialRule> specials(1);
  const std::optional<UnwindRow> row = DecodedRow(frame, specials);
  return row && !row->rule.is_frame() ? specials[row->rule.special_number()] : SpecialRule();
}

DecodedFrame AlignedFrame() {
  DecodedFrame frame;
  frame.places[DecodedFrame::kSp] = FromAnchor(-200);
  frame.link = FromAnchor(-8);
  frame.link_place = FromCfa(-16);
  return frame;
}

TEST(DecodedRow, IsPlainByTheStackPointerOrTheFramePointer) {
  std::vector<SpecialRule> specials(1);
  DecodedFrame frame;
  frame.places[DecodedFrame::kSp] = FromCfa(-32);
  frame.fp = {KeptRegister::kOnStack, FromCfa(-16)};
  frame.special = {KeptRegister::kOnStack, FromCfa(-24)};
  const std::optional<UnwindRow> row = DecodedRow(frame, specials);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->rule, UnwindRule::Frame(UnwindRule::Kind::kFromSp, 4, 1, 2));
  EXPECT_EQ(row->special_register,
            (SavedRegister{.where = SavedRegister::kFromCfa, .distance = -24}));
  frame.places[DecodedFrame::kSp] = FromAnchor(0);
  frame.places[DecodedFrame::kFp] = FromCfa(-16);
  EXPECT_EQ(DecodedRow(frame, specials)->rule,
            UnwindRule::Frame(UnwindRule::Kind::kFromFp, 2, 1, 2));
  EXPECT_EQ(specials.size(), 1u);
}

// CFA = [sp + 192] + 16, and the caller's fp and rbx lie at [CFA - 16] and [sp + 184].
TEST(DecodedRow, CountsFromTheWordOfAnAlignedFrame) {
  DecodedFrame frame = AlignedFrame();
  frame.fp = {KeptRegister::kOnStack, FromCfa(-16)};
  frame.special = {KeptRegister::kOnStack, FromAnchor(-16)};
  const SpecialRule rule = SpecialRow(frame);
  EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kExpression);
  const std::vector<std::uint8_t> expression(rule.expression.view().begin(),
                                             rule.expression.view().end());
  EXPECT_EQ(expression, (std::vector<std::uint8_t>{0x77, 0xC0, 0x01, 0x06, 0x23, 16}));
  EXPECT_EQ(rule.ra.offset, -8);
  EXPECT_EQ(rule.fp.base, SpecialRule::Base::kCfa);
  EXPECT_EQ(rule.fp.offset, -16);
  std::vector<SpecialRule> specials(1);
  EXPECT_EQ(DecodedRow(frame, specials)->special_register,
            (SavedRegister{.where = SavedRegister::kFromSp, .distance = 184}));
}

// As compilers do: CFA = [fp - 8], and the caller's fp lies at [fp].
TEST(DecodedRow, CountsFromTheFramePointerOfAnAlignedFrame) {
  DecodedFrame frame = AlignedFrame();
  frame.places[DecodedFrame::kFp] = FromAnchor(0);
  frame.link_place = FromCfa(0);
  frame.fp = {KeptRegister::kOnStack, FromAnchor(0)};
  const SpecialRule rule = SpecialRow(frame);
  EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kMemory);
  EXPECT_EQ(rule.cfa_base, SpecialRule::Base::kFp);
  EXPECT_EQ(rule.cfa_offset, -8);
  EXPECT_EQ(rule.fp.base, SpecialRule::Base::kFp);
  EXPECT_EQ(rule.fp.offset, 0);
}

TEST(DecodedRow, CountsFromAnotherRegister) {
  DecodedFrame frame = AlignedFrame();
  frame.link = {};
  EXPECT_EQ(SpecialRow(frame).cfa, SpecialRule::Cfa::kUnknown) << "no way leads to its caller";
  frame.places[1] = FromCfa(-8);   // rcx
  frame.places[12] = FromCfa(-8);  // functions give back r12
  EXPECT_EQ(SpecialRow(frame).cfa, SpecialRule::Cfa::kOffset);
  EXPECT_EQ(SpecialRow(frame).cfa_base, SpecialRule::Base::kOther);
  EXPECT_EQ(SpecialRow(frame).cfa_other, 12u);
  EXPECT_EQ(SpecialRow(frame).cfa_offset, 8);
  frame.places[12] = {};
  EXPECT_EQ(SpecialRow(frame).cfa_other, 2u) << "rcx, by DWARF's number";
}

TEST(DecodedRow, IsNoneWhereTheFramePointerIsLost) {
  DecodedFrame frame;
  frame.fp.state = KeptRegister::kLost;
  std::vector<SpecialRule> specials(1);
  EXPECT_FALSE(DecodedRow(frame, specials));
}

TEST(DecodedRow, AddsARuleOnce) {
  std::vector<SpecialRule> specials(1);
  const std::optional<UnwindRow> row = DecodedRow(AlignedFrame(), specials);
  EXPECT_EQ(DecodedRow(AlignedFrame(), specials)->rule, row->rule);
  EXPECT_EQ(specials.size(), 2u);
}

}  // namespace
}  // namespace strobe::internal
