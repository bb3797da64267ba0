#include "strobe/unwind/cfi_compiler.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

using Base = SpecialRule::Base;
using Where = SpecialRule::Where;
using Location = SpecialRule::Location;

// The table of one function of 0x100 bytes at offset 0x1000 with `program`.
CompiledTable OneFunction(const Bytes& program, const CieOptions& cie = {},
                          Architecture architecture = Architecture::kX86_64) {
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(cie), kText + 0x1000, 0x100, program);
  builder.Terminate();
  return CompiledTable(builder.Compile(architecture));
}

constexpr Location CfaMinus(std::int32_t bytes) {
  return {.where = Where::kMemory, .base = Base::kCfa, .offset = -bytes};
}

TEST(CompileCfi, FollowsAPrologueAndAnEpilogue) {
  const CompiledTable compiled =
      OneFunction(Join({Advance(1), DefCfaOffset(16), Offset(kRbp, 2), Advance(3),
                        DefCfaRegister(kRbp), Advance1(0xF0), DefCfa(kRsp, 8), Nop()}));
  EXPECT_EQ(compiled.At(0xFFF), UnwindRule::Unknown());
  EXPECT_EQ(compiled.At(0x1000), FromSp(1));
  EXPECT_EQ(compiled.At(0x1001), FromSp(2, 1, 2));
  EXPECT_EQ(compiled.At(0x1003), FromSp(2, 1, 2));
  EXPECT_EQ(compiled.At(0x1004), FromFp(2, 1, 2));
  EXPECT_EQ(compiled.At(0x10F4), FromSp(1, 1, 2))
      << "the saved word is still there below the stack pointer";
  EXPECT_EQ(compiled.At(0x10FF), FromSp(1, 1, 2));
  EXPECT_EQ(compiled.At(0x1100), UnwindRule::Unknown());
  EXPECT_EQ(compiled.statistics.fdes, 1u);
  EXPECT_EQ(compiled.statistics.rows, 4u);
  EXPECT_EQ(compiled.statistics.unknown_rows, 0u);
  EXPECT_EQ(compiled.statistics.broken_entries, 0u);
}

TEST(CompileCfi, EveryAdvance) {
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(), kText + 0x1000, 0x14000,
              Join({Advance(0x3F), DefCfaOffset(16), Advance1(0x41), DefCfaOffset(24),
                    Advance2(0x180), DefCfaOffset(32), Advance4(0x10000), DefCfaOffset(40),
                    SetLocation(kText + 0x14000), DefCfaOffset(48), Advance(0), DefCfaOffset(56)}));
  const CompiledTable compiled(builder.Compile());
  const std::pair<std::uint32_t, std::uint32_t> expected[] = {
      {0x1000, 1}, {0x103E, 1},  {0x103F, 2},  {0x1080, 3},
      {0x1200, 4}, {0x11200, 5}, {0x13FFF, 5}, {0x14000, 7}};
  for (const auto& [offset, words] : expected)
    EXPECT_EQ(compiled.At(offset), FromSp(words)) << std::hex << offset;
}

TEST(CompileCfi, CodeAlignmentScalesAdvances) {
  const CompiledTable compiled = OneFunction(
      Join({Advance(1), DefCfaOffset(16), Offset(kX29, 2), Offset(kX30, 1), Advance1(2),
            DefCfaRegister(kX29), Advance(3), DefCfa(kArmSp, 0), Restore(kX29), Restore(kX30)}),
      Aarch64Cie(), Architecture::kAarch64);
  EXPECT_EQ(compiled.At(0x1000), FromSp(0, 0)) << "the return address is in lr";
  EXPECT_EQ(compiled.At(0x1004), FromSp(2, 1, 2));
  EXPECT_EQ(compiled.At(0x100C), FromFp(2, 1, 2));
  EXPECT_EQ(compiled.At(0x1018), FromSp(0, 0));
}

TEST(CompileCfi, RulesOfRegisters) {
  EXPECT_EQ(OneFunction(OffsetExtended(kRbp, 5)).At(0x1000), FromSp(1, 1, 5));
  EXPECT_EQ(OneFunction(OffsetExtendedSigned(kRbp, 6)).At(0x1000), FromSp(1, 1, 6));
  EXPECT_EQ(OneFunction(NegativeOffsetExtended(kRbp, 16)).SpecialAt(0x1000).fp, CfaMinus(-128))
      << "factored by -8, and negated";
  EXPECT_EQ(OneFunction(Join({Offset(kRbp, 2), RestoreExtended(kRbp)})).At(0x1000), FromSp(1));
  EXPECT_EQ(OneFunction(Join({Offset(kRbp, 2), Restore(kRbp)})).At(0x1000), FromSp(1));
  EXPECT_EQ(OneFunction(Join({Offset(kRbp, 2), SameValue(kRbp)})).At(0x1000), FromSp(1));
  EXPECT_EQ(OneFunction(Undefined(kRbp)).SpecialAt(0x1000).fp.where, Where::kUndefined);
  EXPECT_EQ(OneFunction(Undefined(kRip)).At(0x1000), UnwindRule::Stop());
  EXPECT_EQ(OneFunction(InRegister(kRbp, kRbx)).SpecialAt(0x1000).fp,
            (Location{Where::kRegister, Base::kOther, kRbx, 0}));
  EXPECT_EQ(OneFunction(InRegister(kRip, kRbp)).SpecialAt(0x1000).ra,
            (Location{Where::kRegister, Base::kFp, 0, 0}));
  EXPECT_EQ(OneFunction(Expression(kRbp, RegisterPlus(kRsp, -16))).SpecialAt(0x1000).fp,
            (Location{Where::kMemory, Base::kSp, 0, -16}));
  EXPECT_EQ(OneFunction(Offset(kRbx, 3)).At(0x1000), FromSp(1))
      << "registers that a walk does not need";
  EXPECT_EQ(OneFunction(Join({ArgumentsSize(32), NegateReturnAddressState(),
                              ValueExpression(kRbx, {1, 2, 3})}))
                .At(0x1000),
            FromSp(1));
}

TEST(CompileCfi, ARegisterWhereTheReturnAddressIsExpectedTakesASpecialRule) {
  const CompiledTable shared = OneFunction(Join({DefCfaOffset(16), Offset(kRbp, 1)}));
  EXPECT_EQ(shared.At(0x1000).kind(), UnwindRule::Kind::kSpecial);
  EXPECT_NE(shared.At(0x1000), UnwindRule::Unknown());
  const CompiledTable moved = OneFunction(Join({DefCfaOffset(32), Offset(kRip, 2)}));
  EXPECT_EQ(moved.At(0x1000).kind(), UnwindRule::Kind::kSpecial);
  EXPECT_NE(moved.At(0x1000), UnwindRule::Unknown());
}

TEST(CompileCfi, RestoreGivesWhatTheCieSaid) {
  const CieOptions cie{.program = Join({DefCfa(kRsp, 16), Offset(kRip, 1), Offset(kRbp, 2)})};
  EXPECT_EQ(OneFunction(Join({SameValue(kRbp), Restore(kRbp)}), cie).At(0x1000), FromSp(2, 1, 2));
}

TEST(CompileCfi, RulesOfTheCfa) {
  EXPECT_EQ(OneFunction(DefCfaSigned(kRbp, -3)).At(0x1000), FromFp(3));
  EXPECT_EQ(OneFunction(DefCfaOffsetSigned(-4)).At(0x1000), FromSp(4));
  const SpecialRule other = OneFunction(DefCfa(kR10, 0)).SpecialAt(0x1000);
  EXPECT_EQ(other.cfa, SpecialRule::Cfa::kOffset);
  EXPECT_EQ(other.cfa_base, Base::kOther);
  EXPECT_EQ(other.cfa_other, kR10);
  const SpecialRule aligned =
      OneFunction(DefCfaExpression(Dereferenced(RegisterPlus(kRbp, -8)))).SpecialAt(0x1000);
  EXPECT_EQ(aligned.cfa, SpecialRule::Cfa::kMemory);
  EXPECT_EQ(aligned.cfa_base, Base::kFp);
  EXPECT_EQ(aligned.cfa_offset, -8);
  EXPECT_EQ(aligned.ra, CfaMinus(8));
  const SpecialRule plain =
      OneFunction(DefCfaExpression(RegisterPlus(kRsp, 400))).SpecialAt(0x1000);
  EXPECT_EQ(plain.cfa, SpecialRule::Cfa::kOffset);
  EXPECT_EQ(plain.cfa_offset, 400);
  const SpecialRule odd = OneFunction(DefCfa(kRsp, 12)).SpecialAt(0x1000);
  EXPECT_EQ(odd.cfa_offset, 12) << "no whole words";
  EXPECT_EQ(OneFunction(DefCfa(kRsp, 8 * 8191)).At(0x1000), FromSp(8191));
  EXPECT_EQ(OneFunction(DefCfa(kRsp, 8 * 8192)).SpecialAt(0x1000).cfa_offset, 8 * 8192)
      << "too many for a plain rule";
  const SpecialRule plt = OneFunction(DefCfaExpression(PltExpression(11))).SpecialAt(0x1000);
  EXPECT_EQ(plt.cfa, SpecialRule::Cfa::kExpression);
}

TEST(CompileCfi, WhereRbxIsSaved) {
  const CompiledTable compiled =
      OneFunction(Join({Advance(1), DefCfaOffset(16), Offset(kRbx, 2), Advance(1),
                        Expression(kRbx, RegisterPlus(kRsp, 128)), Advance(1),
                        ValueExpression(kRbx, RegisterPlus(kRsp, 0)), Advance(1), Undefined(kRbx),
                        Advance(1), Restore(kRbx)}));
  const auto saved = [&](std::uint32_t offset) {
    const SavedRegister row = compiled.table.FindSpecialRegister(offset);
    return std::pair(static_cast<SavedRegister::Where>(row.where),
                     static_cast<std::int32_t>(row.distance));
  };
  EXPECT_EQ(saved(0x0FFF).first, SavedRegister::kUnknown);
  EXPECT_EQ(saved(0x1000), std::pair(SavedRegister::kUnchanged, 0));
  EXPECT_EQ(saved(0x1001), std::pair(SavedRegister::kFromCfa, -16));
  EXPECT_EQ(saved(0x1002), std::pair(SavedRegister::kFromSp, 128));
  EXPECT_EQ(saved(0x1003).first, SavedRegister::kUnknown);
  EXPECT_EQ(saved(0x1004).first, SavedRegister::kUnknown);
  EXPECT_EQ(saved(0x1005), std::pair(SavedRegister::kUnchanged, 0));
}

TEST(CompileCfi, SignalFrame) {
  const CieOptions cie{.augmentation = "zRS",
                       .program = DefCfaExpression(Dereferenced(RegisterPlus(kRsp, 160)))};
  const SpecialRule rule = OneFunction(Join({Expression(kRip, RegisterPlus(kRsp, 168)),
                                             Expression(kRbp, RegisterPlus(kRsp, 120))}),
                                       cie)
                               .SpecialAt(0x1000);
  EXPECT_TRUE(rule.is_signal_frame);
  EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kMemory);
  EXPECT_EQ(rule.ra, (Location{Where::kMemory, Base::kSp, 0, 168}));
  EXPECT_EQ(rule.fp, (Location{Where::kMemory, Base::kSp, 0, 120}));
}

TEST(CompileCfi, SignalFramesOfAarch64SayWhereTheLinkRegisterIs) {
  // The pc has a column of its own there, since lr belongs to what was interrupted.
  constexpr std::uint8_t kPc = 96;
  const CieOptions cie{.augmentation = "zRS",
                       .code_alignment = 4,
                       .return_register = kPc,
                       .program = DefCfa(kArmSp, 64)};
  const SpecialRule rule =
      OneFunction(Join({Offset(kX30, 2), OffsetExtended(kPc, 1)}), cie, Architecture::kAarch64)
          .SpecialAt(0x1000);
  EXPECT_TRUE(rule.is_signal_frame);
  EXPECT_EQ(rule.lr, CfaMinus(16));
  EXPECT_EQ(rule.ra, CfaMinus(8));
}

TEST(CompileCfi, SignaturesOfReturnAddressesChangeNoRule) {
  for (const Bytes& instruction : {NegateReturnAddressState(), Bytes{0x2C}}) {
    const CompiledTable compiled =
        OneFunction(Join({instruction, Advance(1), DefCfaOffset(16), Offset(kX29, 2),
                          Offset(kX30, 1), Advance(1), instruction}),
                    Aarch64Cie(), Architecture::kAarch64);
    EXPECT_EQ(compiled.At(0x1000), FromSp(0, 0));
    EXPECT_EQ(compiled.At(0x1008), FromSp(2, 1, 2));
    EXPECT_EQ(compiled.statistics.broken_entries, 0u);
  }
}

TEST(CompileCfi, RememberedStatesNest) {
  const CompiledTable compiled =
      OneFunction(Join({DefCfaOffset(16), RememberState(), Advance(1), DefCfaOffset(24),
                        Offset(kRbp, 2), RememberState(), Advance(1), DefCfa(kRbp, 32), Advance(1),
                        RestoreState(), Advance(1), RestoreState()}));
  EXPECT_EQ(compiled.At(0x1000), FromSp(2));
  EXPECT_EQ(compiled.At(0x1001), FromSp(3, 1, 2));
  EXPECT_EQ(compiled.At(0x1002), FromFp(4, 1, 2));
  EXPECT_EQ(compiled.At(0x1003), FromSp(3, 1, 2));
  EXPECT_EQ(compiled.At(0x1004), FromSp(2));
}

TEST(CompileCfi, WhatNoRuleExpressesIsLostAndCounted) {
  for (const Bytes& program :
       {DefCfaExpression({0x2F, 0, 0, 0x77, 8}), DefCfaExpression({0x06}), DefCfaExpression({}),
        ValueOffset(kRbp, 1), ValueOffsetSigned(kRip, 1),
        ValueExpression(kRbp, RegisterPlus(kRsp, 0)), SameValue(kRip), DefCfa(40, 8),
        Expression(kRbp, Dereferenced(RegisterPlus(kRsp, 8))),
        DefCfa(kRsp, std::uint64_t{1} << 40)}) {
    const CompiledTable compiled = OneFunction(
        Join({Advance(1), program, Advance(1), DefCfa(kRsp, 8), SameValue(kRbp), Offset(kRip, 1)}));
    EXPECT_EQ(compiled.At(0x1000), FromSp(1));
    EXPECT_EQ(compiled.SpecialAt(0x1001).cfa, SpecialRule::Cfa::kLost)
        << ::testing::PrintToString(program);
    EXPECT_EQ(compiled.At(0x1002), FromSp(1)) << "the rows behind it are unaffected";
    EXPECT_EQ(compiled.statistics.unknown_rows, 1u);
    EXPECT_EQ(compiled.statistics.broken_entries, 0u);
  }
}

// The product of an offset and the alignment factor is whatever a file says.
// UndefinedBehaviorSanitizer looks on.
TEST(CompileCfi, OffsetsBeyond64BitsAreLost) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  for (const Bytes& program :
       {OffsetExtendedSigned(kRbp, kLeast), OffsetExtendedSigned(kRbp, kLeast / 8 - 1),
        DefCfaSigned(kRsp, kLeast), DefCfaOffsetSigned(-(kLeast / 4)),
        NegativeOffsetExtended(kRbp, std::uint64_t{1} << 63)}) {
    EXPECT_EQ(OneFunction(program).SpecialAt(0x1000).cfa, SpecialRule::Cfa::kLost)
        << static_cast<int>(program[0]);
  }
  // Within 64 bits, but the number that has no opposite.
  EXPECT_EQ(
      OneFunction(OffsetExtendedSigned(kRbp, kLeast), {.data_alignment = 1}).SpecialAt(0x1000).cfa,
      SpecialRule::Cfa::kLost);
}

TEST(CompileCfi, BrokenInstructionsEndTheirFunctionOnly) {
  for (const Bytes& program :
       {Bytes{0x3F}, Bytes{0x17}, Bytes{0x1D}, RestoreState(), Bytes{0x0C, 0x80},
        Bytes{0x0F, 0x20, 0x77}, Bytes{0x04, 1}, Bytes{0x86}}) {
    EhFrameBuilder builder;
    const std::size_t cie = builder.Cie();
    builder.Fde(cie, kText + 0x1000, 0x100,
                Join({Advance(1), DefCfaOffset(16), Advance(1), program}));
    builder.Fde(cie, kText + 0x2000, 0x100, DefCfaOffset(16));
    const CompiledTable compiled(builder.Compile());
    EXPECT_EQ(compiled.At(0x1000), FromSp(1)) << ::testing::PrintToString(program);
    EXPECT_EQ(compiled.SpecialAt(0x1002).cfa, SpecialRule::Cfa::kLost)
        << "nothing is known of what comes behind";
    EXPECT_EQ(compiled.At(0x2000), FromSp(2));
    EXPECT_EQ(compiled.statistics.broken_entries, 1u);
  }
}

TEST(CompileCfi, VersionsAugmentationsAndLengths) {
  for (const std::uint8_t version : {1, 3, 4}) {
    for (const bool is_long : {false, true}) {
      EhFrameBuilder builder;
      const std::size_t cie = builder.Cie({.version = version, .has_64bit_length = is_long});
      builder.Fde(cie, kText + 0x1000, 0x10, DefCfaOffset(16), is_long);
      EXPECT_EQ(CompiledTable(builder.Compile()).At(0x1000), FromSp(2)) << int{version} << is_long;
    }
  }
  const CieOptions all{.augmentation = "zPLR",
                       .augmentation_data = Join({{0x00}, Fixed(Address{0x1234}), {0x1B}, {0x04}})};
  EXPECT_EQ(OneFunction(DefCfaOffset(16), all).At(0x1000), FromSp(2))
      << "personality and language data are skipped";
  const CieOptions unknown{.augmentation = "zRx", .augmentation_data = {0x04, 1, 2, 3}};
  EXPECT_EQ(OneFunction(DefCfaOffset(16), unknown).At(0x1000), FromSp(2))
      << "the length says where unknown data ends";
  // Without augmentation an FDE has absolute pointers and no data.
  EhFrameBuilder none;
  none.FdeWithHeader(none.Cie({.augmentation = ""}),
                     Join({Fixed(kText + 0x1000), Fixed(Address{0x10})}), DefCfaOffset(16));
  EXPECT_EQ(CompiledTable(none.Compile()).At(0x1000), FromSp(2));
}

TEST(CompileCfi, RelativePointersOfFourBytes) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie({.augmentation_data = {0x1B}});
  const Address here = EhFrameBuilder::kEhFrame + builder.bytes.size() + 8;
  builder.FdeWithHeader(cie,
                        Join({Fixed(static_cast<std::int32_t>(kText + 0x1000 - here)),
                              Fixed(std::int32_t{0x10}), Uleb(0)}),
                        DefCfaOffset(16));
  EXPECT_EQ(CompiledTable(builder.Compile()).At(0x1000), FromSp(2));
}

TEST(CompileCfi, CiesThatCannotBeReadTakeTheirFdesWithThem) {
  for (const CieOptions& cie :
       {CieOptions{.version = 2}, CieOptions{.augmentation = "eh"},
        CieOptions{.augmentation_data = {}}, CieOptions{.augmentation = std::string(40, 'z')},
        CieOptions{.program = {0x3F}}}) {
    EhFrameBuilder builder;
    const std::size_t bad = builder.Cie(cie);
    builder.Fde(bad, kText + 0x1000, 0x100, {});
    builder.Fde(bad, kText + 0x1100, 0x100, {});
    builder.Fde(builder.Cie(), kText + 0x2000, 0x100, {});
    const CompiledTable compiled(builder.Compile());
    EXPECT_EQ(compiled.At(0x1000), UnwindRule::Unknown()) << cie.augmentation;
    EXPECT_EQ(compiled.At(0x2000), FromSp(1)) << cie.augmentation;
    EXPECT_EQ(compiled.statistics.broken_entries, 1u);
  }
}

TEST(CompileCfi, FunctionsOutsideOfTheTextAreLeftOut) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie();
  builder.Fde(cie, 0, 0x100, {});
  builder.Fde(cie, kText - 1, 0x100, {});
  builder.Fde(cie, kTextLimit - 1, 2, {});
  builder.Fde(cie, kText, 0, {});
  builder.Fde(cie, kText + 8, ~Address{0}, {});
  builder.Fde(cie, kTextLimit - 1, 1, {});
  const CompiledCfi compiled = builder.Compile();
  EXPECT_EQ(compiled.statistics.fdes, 1u);
  EXPECT_EQ(compiled.rows.front().offset, kTextLimit - 1 - kText);
}

TEST(CompileCfi, FunctionsInAnyOrderAndSideBySide) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie();
  builder.Fde(cie, kText + 0x2000, 0x100, DefCfaOffset(24));
  builder.Fde(cie, kText + 0x1000, 0x100, DefCfaOffset(16));
  builder.Fde(cie, kText + 0x1100, 0x100, DefCfaOffset(32));
  const CompiledTable compiled(builder.Compile());
  EXPECT_EQ(compiled.At(0x10FF), FromSp(2));
  EXPECT_EQ(compiled.At(0x1100), FromSp(4));
  EXPECT_EQ(compiled.At(0x1200), UnwindRule::Unknown());
  EXPECT_EQ(compiled.At(0x1FFF), UnwindRule::Unknown());
  EXPECT_EQ(compiled.At(0x2000), FromSp(3));
  EXPECT_EQ(compiled.At(0x2100), UnwindRule::Unknown());
}

// Whatever the bytes are: no fault (the sanitizers watch), sorted rows, and rules that name what
// there is.
TEST(CompileCfi, HostileBytes) {
  EhFrameBuilder good;
  const std::size_t cie = good.Cie();
  for (Address i = 0; i < 8; ++i) {
    good.Fde(cie, kText + i * 0x100, 0x100,
             Join({Advance(1), DefCfaOffset(16), Offset(kRbp, 2), RememberState(), Advance2(0x20),
                   DefCfaExpression(PltExpression(10)), Advance(4), RestoreState(),
                   Expression(kRbp, RegisterPlus(kRsp, 8))}));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    EhFrameBuilder bad = good;
    for (std::uint32_t i = 1 + random() % 6; i > 0; --i)
      bad.bytes[random() % bad.bytes.size()] = static_cast<std::uint8_t>(random());
    if (round % 4 == 0) bad.bytes.resize(random() % bad.bytes.size());
    const CompiledCfi compiled =
        bad.Compile(round % 2 == 0 ? Architecture::kX86_64 : Architecture::kAarch64);
    std::uint32_t last = 0;
    for (const UnwindRow& row : compiled.rows) {
      ASSERT_GE(row.offset, last);
      last = row.offset;
      if (row.rule.kind() == UnwindRule::Kind::kSpecial) {
        ASSERT_LT(row.rule.special_number(), compiled.specials.size());
      }
    }
  }
}

TEST(CompileCfi, TextThatIsNoneOrTooLong) {
  for (const Address limit : {kText, kText - 1, kText + (Address{1} << 33)}) {
    const CompiledCfi compiled = CompileCfi({.eh_frame = {},
                                             .eh_frame_address = EhFrameBuilder::kEhFrame,
                                             .text_start = kText,
                                             .text_limit = limit});
    EXPECT_TRUE(compiled.rows.empty());
    EXPECT_EQ(compiled.specials.size(), 1u);
  }
}

TEST(EhFrameAddress, ReadsTheHeader) {
  // Version 1; the section's address relative to the field, four bytes.
  const Bytes header =
      Join({{1, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{-0x104}), Fixed(std::uint32_t{0})});
  EXPECT_EQ(EhFrameAddress(header, 0x1000), 0x1004u - 0x104);
  EXPECT_EQ(EhFrameAddress(Join({{1, 0x3B, 0x03, 0x3B}, Fixed(std::int32_t{0x40})}), 0x1000),
            0x1040u)
      << "relative to the header";
  EXPECT_EQ(EhFrameAddress(Join({{2, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{4})}), 0x1000), 0u);
  EXPECT_EQ(EhFrameAddress(Bytes{1, 0x1B, 0x03}, 0x1000), 0u);
  EXPECT_EQ(EhFrameAddress({}, 0x1000), 0u);
}

}  // namespace
}  // namespace strobe::testing
