#include "../../src/unwind/cfi_machine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

using internal::CfiEntry;
using internal::CfiMachine;
using internal::CfiState;
using internal::CfiValue;
using internal::DwarfReader;
using Kind = CfiValue::Kind;

// Runs programs of one CIE for x86-64, and keeps the rows.
struct CfiProgram {
  explicit CfiProgram(std::uint64_t code_alignment = 1, std::int64_t data_alignment = -8,
                      std::uint64_t return_register = kRip) {
    entry.code_alignment = code_alignment;
    entry.data_alignment = data_alignment;
    entry.return_register = return_register;
  }

  bool Run(Bytes instructions) {
    program = std::move(instructions);
    rows.clear();
    CfiMachine machine(entry, DwarfRegistersOf(architecture));
    const bool is_whole = machine.Run(
        DwarfReader(program, 0), kText,
        [&](Address location, const CfiState& state) { rows.emplace_back(location, state); });
    last = machine.state();
    return is_whole;
  }

  Architecture architecture = Architecture::kX86_64;
  CfiEntry entry;
  Bytes program;  // the expressions of the states lie in it
  std::vector<std::pair<Address, CfiState>> rows;
  CfiState last;
};

TEST(CfiMachineTest, AnEmptyProgramIsOneRowOfTheInitialState) {
  CfiProgram machine;
  machine.entry.initial.cfa_offset = 40;
  ASSERT_TRUE(machine.Run({}));
  ASSERT_EQ(machine.rows.size(), 1u);
  EXPECT_EQ(machine.rows[0].first, kText);
  EXPECT_EQ(machine.rows[0].second.cfa_offset, 40);
}

TEST(CfiMachineTest, ARowSaysTheStateBeforeTheLocationMovesOn) {
  CfiProgram machine;
  machine.entry.code_alignment = 4;
  ASSERT_TRUE(
      machine.Run(Join({DefCfa(kRsp, 8), Advance(1), DefCfaOffset(16), Advance1(2),
                        DefCfaOffset(24), Advance2(300), DefCfaOffset(32), Advance4(70000),
                        DefCfaOffset(40), SetLocation(kText + 0x100000), DefCfaOffset(48)})));
  const std::vector<Address> offsets = {0, 4, 12, 1212, 281212, 0x100000};
  ASSERT_EQ(machine.rows.size(), offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    EXPECT_EQ(machine.rows[i].first, kText + offsets[i]) << i;
    EXPECT_EQ(machine.rows[i].second.cfa_offset, static_cast<std::int64_t>(8 * (i + 1))) << i;
  }
}

TEST(CfiMachineTest, AnAdvanceByNothingMakesNoRow) {
  CfiProgram machine;
  ASSERT_TRUE(machine.Run(Join({Advance(0), Advance1(0), Advance2(0), Advance4(0),
                                SetLocation(kText), Nop(), DefCfaOffset(16)})));
  EXPECT_EQ(machine.rows.size(), 1u);
  EXPECT_EQ(machine.last.cfa_offset, 16);
}

TEST(CfiMachineTest, FollowsTheRegistersOfAWalk) {
  CfiProgram machine;
  ASSERT_TRUE(machine.Run(
      Join({Offset(kRip, 1), Offset(kRbp, 2), OffsetExtended(kRbx, 3), Offset(kR10, 4)})));
  EXPECT_EQ(machine.last.ra.kind, Kind::kOffset);
  EXPECT_EQ(machine.last.ra.number, -8);
  EXPECT_EQ(machine.last.fp.number, -16);
  EXPECT_EQ(machine.last.special.number, -24);
  EXPECT_EQ(machine.last.lr.kind, Kind::kSame) << "x86-64 has no link register";
  ASSERT_TRUE(machine.Run(Join({OffsetExtendedSigned(kRbp, -2), NegativeOffsetExtended(kRbx, 2)})));
  EXPECT_EQ(machine.last.fp.number, 16);
  EXPECT_EQ(machine.last.special.number, 16);
}

TEST(CfiMachineTest, TheLinkRegisterIsTheReturnAddressToo) {
  CfiProgram machine(4, -8, kX30);
  machine.architecture = Architecture::kAarch64;
  ASSERT_TRUE(machine.Run(Join({Offset(kX30, 1), Offset(kX29, 2), NegateReturnAddressState()})));
  EXPECT_EQ(machine.last.ra.number, -8);
  EXPECT_EQ(machine.last.lr.number, -8);
  EXPECT_EQ(machine.last.fp.number, -16);
}

TEST(CfiMachineTest, KnowsEveryKindOfRule) {
  CfiProgram machine;
  ASSERT_TRUE(machine.Run(Join({Undefined(kRip), InRegister(kRbp, kR10), SameValue(kRbx)})));
  EXPECT_EQ(machine.last.ra.kind, Kind::kUndefined);
  EXPECT_EQ(machine.last.fp.kind, Kind::kRegister);
  EXPECT_EQ(machine.last.fp.number, kR10);
  EXPECT_EQ(machine.last.special.kind, Kind::kSame);
  ASSERT_TRUE(machine.Run(Expression(kRbp, {1, 2, 3})));
  EXPECT_EQ(machine.last.fp.kind, Kind::kExpression);
  EXPECT_EQ(Bytes(machine.last.fp.expression.begin(), machine.last.fp.expression.end()),
            (Bytes{1, 2, 3}));
  for (const Bytes& value :
       {ValueOffset(kRbp, 1), ValueOffsetSigned(kRbp, -1), ValueExpression(kRbp, {1, 2})}) {
    ASSERT_TRUE(machine.Run(value));
    EXPECT_EQ(machine.last.fp.kind, Kind::kUnsupported);
  }
}

TEST(CfiMachineTest, TheCfaIsARegisterOrAnExpression) {
  CfiProgram machine;
  ASSERT_TRUE(machine.Run(Join({DefCfa(kRsp, 8), DefCfaRegister(kRbp)})));
  EXPECT_EQ(machine.last.cfa_register, kRbp);
  EXPECT_EQ(machine.last.cfa_offset, 8);
  ASSERT_TRUE(machine.Run(Join({DefCfaSigned(kRbp, -2), DefCfaExpression({9})})));
  EXPECT_TRUE(machine.last.cfa_is_expression);
  EXPECT_EQ(machine.last.cfa_expression[0], 9);
  ASSERT_TRUE(machine.Run(Join({DefCfaExpression({9}), DefCfa(kRsp, 8), DefCfaOffsetSigned(-3)})));
  EXPECT_FALSE(machine.last.cfa_is_expression);
  EXPECT_EQ(machine.last.cfa_register, kRsp);
  EXPECT_EQ(machine.last.cfa_offset, 24);
}

TEST(CfiMachineTest, RestoresWhatTheCieSays) {
  CfiProgram machine;
  machine.entry.initial.fp = {.kind = Kind::kOffset, .number = -40, .expression = {}};
  ASSERT_TRUE(
      machine.Run(Join({Offset(kRbp, 1), Offset(kRbx, 2), Restore(kRbp), RestoreExtended(kRbx)})));
  EXPECT_EQ(machine.last.fp.number, -40);
  EXPECT_EQ(machine.last.special.kind, Kind::kSame);
}

TEST(CfiMachineTest, RemembersStatesInAStack) {
  CfiProgram machine;
  ASSERT_TRUE(machine.Run(Join({DefCfa(kRsp, 8), RememberState(), DefCfaOffset(16), RememberState(),
                                DefCfaOffset(24), Offset(kRbp, 2), RestoreState()})));
  EXPECT_EQ(machine.last.cfa_offset, 16);
  EXPECT_EQ(machine.last.fp.kind, Kind::kSame);
  EXPECT_FALSE(machine.Run(Join({RememberState(), RestoreState(), RestoreState()})))
      << "nothing is remembered";
  EXPECT_FALSE(machine.Run(Bytes(1000, RememberState()[0]))) << "more than any code needs";
}

TEST(CfiMachineTest, RowsBeforeABrokenInstructionAreValid) {
  CfiProgram machine;
  EXPECT_FALSE(machine.Run(Join({DefCfa(kRsp, 8), Advance(4), {0x3F}, Advance(4)})));
  ASSERT_EQ(machine.rows.size(), 1u);
  EXPECT_EQ(machine.rows[0].second.cfa_offset, 8);
  EXPECT_FALSE(machine.Run(Join({DefCfa(kRsp, 8), Advance(4), {0x0E}}))) << "an operand is missing";
  EXPECT_EQ(machine.rows.size(), 1u);
  EXPECT_FALSE(machine.Run({0x0F, 5, 1})) << "an expression is longer than the program";
}

TEST(CfiMachineTest, IgnoresTheSizeOfArguments) {
  CfiProgram machine;
  ASSERT_TRUE(machine.Run(Join({ArgumentsSize(300), DefCfa(kRsp, 8)})));
  EXPECT_EQ(machine.last.cfa_offset, 8);
}

TEST(CfiMachineTest, OffsetsTooLargeForARuleStayTooLarge) {
  const std::int64_t too_large = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t alignment :
       {std::int64_t{-8}, std::numeric_limits<std::int64_t>::min()}) {
    CfiProgram machine(1, alignment);
    for (const std::uint64_t factored : {std::uint64_t{1} << 33, std::uint64_t{1} << 61,
                                         std::numeric_limits<std::uint64_t>::max() / 2}) {
      ASSERT_TRUE(machine.Run(Join({Offset(kRbp, factored), NegativeOffsetExtended(kRbx, factored),
                                    DefCfaSigned(kRsp, static_cast<std::int64_t>(factored))})));
      EXPECT_GT(machine.last.fp.number, too_large);
      EXPECT_GT(machine.last.special.number, too_large);
      EXPECT_GT(machine.last.cfa_offset, too_large);
    }
  }
}

}  // namespace
}  // namespace strobe::testing
