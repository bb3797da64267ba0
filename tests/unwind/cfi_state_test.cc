#include "../../src/unwind/cfi_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

using internal::CfiEntry;
using internal::CfiState;
using internal::CfiValue;
using internal::SavedSpecialRegisterOf;
using internal::SpecialRules;
using Kind = CfiValue::Kind;

CfiValue At(std::int64_t offset) {
  return {.kind = Kind::kOffset, .number = offset, .expression = {}};
}
CfiValue Of(Kind kind, std::int64_t number = 0) {
  return {.kind = kind, .number = number, .expression = {}};
}

// A function's state at its first instruction.
CfiState Entered() {
  CfiState state;
  state.cfa_register = kRsp;
  state.cfa_offset = 8;
  state.ra = At(-8);
  return state;
}

class SpecialRulesTest : public ::testing::Test {
 protected:
  UnwindRule RuleOf(const CfiState& state) { return rules_.RuleOf(state, entry_, registers_); }
  // The special rule of `state`; one without a CFA if there is none.
  SpecialRule SpecialOf(const CfiState& state) {
    const UnwindRule rule = RuleOf(state);
    EXPECT_EQ(rule.kind(), UnwindRule::Kind::kSpecial);
    SpecialRules copy = rules_;
    return copy.Take()[rule.special_number()];
  }

  SpecialRules rules_;
  CfiEntry entry_;
  DwarfRegisters registers_ = DwarfRegistersOf(Architecture::kX86_64);
};

TEST_F(SpecialRulesTest, CommonStatesArePlainRules) {
  CfiState state = Entered();
  EXPECT_EQ(RuleOf(state), FromSp(1));
  state.cfa_offset = 16;
  state.fp = At(-16);
  EXPECT_EQ(RuleOf(state), FromSp(2, 1, 2));
  state.cfa_register = kRbp;
  EXPECT_EQ(RuleOf(state), FromFp(2, 1, 2));
  EXPECT_EQ(rules_.Take().size(), 1u) << "no special rule is needed";
}

TEST_F(SpecialRulesTest, AStackEndsWhereTheReturnAddressIsUndefined) {
  CfiState state = Entered();
  state.ra = Of(Kind::kUndefined);
  EXPECT_EQ(RuleOf(state), UnwindRule::Stop());
}

TEST_F(SpecialRulesTest, CfasThatNoPlainRuleHoldsAreSpecial) {
  CfiState state = Entered();
  for (const std::int64_t offset :
       {std::int64_t{12}, std::int64_t{-8}, std::int64_t{8} * (UnwindRule::kMaxCfaWords + 1)}) {
    state.cfa_offset = offset;
    const SpecialRule rule = SpecialOf(state);
    EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kOffset);
    EXPECT_EQ(rule.cfa_base, SpecialRule::Base::kSp);
    EXPECT_EQ(rule.cfa_offset, offset);
  }
  state.cfa_offset = 8;
  state.cfa_register = kR10;
  EXPECT_EQ(SpecialOf(state).cfa_base, SpecialRule::Base::kOther);
  EXPECT_EQ(SpecialOf(state).cfa_other, kR10);
}

TEST_F(SpecialRulesTest, ExpressionsOfCfas) {
  CfiState state = Entered();
  state.cfa_is_expression = true;
  const Bytes sum = RegisterPlus(kRbp, -24);
  state.cfa_expression = sum;
  EXPECT_EQ(SpecialOf(state).cfa, SpecialRule::Cfa::kOffset);
  EXPECT_EQ(SpecialOf(state).cfa_offset, -24);
  const Bytes what_lies_there = Dereferenced(sum);
  state.cfa_expression = what_lies_there;
  EXPECT_EQ(SpecialOf(state).cfa, SpecialRule::Cfa::kMemory);
  EXPECT_EQ(SpecialOf(state).cfa_base, SpecialRule::Base::kFp);
}

TEST_F(SpecialRulesTest, AnOffsetsLastByteIsNoOperation) {
  constexpr std::int64_t kEndsLikeAnOperation = 0x306;  // its last byte is that of a dereference
  CfiState state = Entered();
  state.cfa_is_expression = true;
  const Bytes sum = RegisterPlus(kRbp, kEndsLikeAnOperation);
  state.cfa_expression = sum;
  EXPECT_EQ(SpecialOf(state).cfa, SpecialRule::Cfa::kOffset);
  EXPECT_EQ(SpecialOf(state).cfa_offset, kEndsLikeAnOperation);
}

TEST_F(SpecialRulesTest, OtherExpressionsAreEvaluated) {
  const Bytes expressions[] = {Join({Dereferenced(RegisterPlus(kRsp, 8)), {0x06}}),
                               Join({Dereferenced(RegisterPlus(kRsp, 8)), {0x23, 8}}),
                               RegisterPlus(kRsp, std::int64_t{1} << 31), PltExpression(11)};
  CfiState state = Entered();
  state.cfa_is_expression = true;
  for (const Bytes& expression : expressions) {
    state.cfa_expression = expression;
    const SpecialRule rule = SpecialOf(state);
    EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kExpression);
    EXPECT_EQ(Bytes(rule.expression.view().begin(), rule.expression.view().end()), expression);
  }
}

TEST_F(SpecialRulesTest, AFrameWhoseExpressionCannotBeFollowedIsLost) {
  constexpr std::uint8_t kSkip = 0x2F;  // a jump
  const Bytes expressions[] = {{},
                               {0x77},
                               {0x77, 0x80},
                               {kSkip, 0, 0, 0x77, 8},
                               Join({RegisterPlus(kRsp, 8), {0x22}}),
                               Bytes(SpecialRule::Expression::kMaxBytes + 1, 0x96)};
  CfiState state = Entered();
  state.cfa_is_expression = true;
  for (const Bytes& expression : expressions) {
    state.cfa_expression = expression;
    EXPECT_EQ(SpecialOf(state).cfa, SpecialRule::Cfa::kLost);
    EXPECT_TRUE(rules_.IsLost(RuleOf(state)));
  }
  EXPECT_FALSE(rules_.IsLost(UnwindRule::Unknown()));
  EXPECT_FALSE(rules_.IsLost(FromSp(1)));
}

TEST_F(SpecialRulesTest, PlacesOfRegistersThatNoPlainRuleHoldsAreSpecial) {
  CfiState state = Entered();
  state.ra = At(-16);
  EXPECT_EQ(SpecialOf(state).ra.where, SpecialRule::Where::kMemory);
  EXPECT_EQ(SpecialOf(state).ra.offset, -16);
  state = Entered();
  state.fp = Of(Kind::kUndefined);
  EXPECT_EQ(SpecialOf(state).fp.where, SpecialRule::Where::kUndefined);
  state.fp = Of(Kind::kRegister, kR10);
  EXPECT_EQ(SpecialOf(state).fp.where, SpecialRule::Where::kRegister);
  EXPECT_EQ(SpecialOf(state).fp.other, kR10);
  const Bytes expression = RegisterPlus(kRsp, 40);
  state.fp = {.kind = Kind::kExpression, .number = 0, .expression = expression};
  EXPECT_EQ(SpecialOf(state).fp.where, SpecialRule::Where::kMemory);
  EXPECT_EQ(SpecialOf(state).fp.base, SpecialRule::Base::kSp);
  EXPECT_EQ(SpecialOf(state).fp.offset, 40);
  for (const std::int64_t offset :
       {std::int64_t{-12}, std::int64_t{16}, std::int64_t{-8} * (UnwindRule::kMaxSlotWords + 1)}) {
    state.fp = At(offset);
    EXPECT_EQ(SpecialOf(state).fp.offset, offset);
  }
}

TEST_F(SpecialRulesTest, AFrameOfWhichNoRuleCanSpeakIsLost) {
  CfiState state = Entered();
  state.fp = Of(Kind::kUnsupported);
  EXPECT_TRUE(rules_.IsLost(RuleOf(state)));
  const std::int64_t limits[] = {std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 31};
  for (const std::int64_t offset : limits) {
    state = Entered();
    state.fp = At(offset);
    EXPECT_TRUE(rules_.IsLost(RuleOf(state))) << offset;
    state = Entered();
    state.cfa_offset = offset;
    EXPECT_TRUE(rules_.IsLost(RuleOf(state))) << offset;
  }
  state = Entered();
  state.ra = Of(Kind::kSame);
  EXPECT_TRUE(rules_.IsLost(RuleOf(state))) << "a call leaves it in no register";
  state = Entered();
  state.cfa_register = 32;
  EXPECT_TRUE(rules_.IsLost(RuleOf(state))) << "a register that no walk has";
}

TEST_F(SpecialRulesTest, ALeafsReturnAddressMayBeInTheLinkRegister) {
  registers_ = DwarfRegistersOf(Architecture::kAarch64);
  CfiState state;
  state.cfa_register = kArmSp;
  EXPECT_EQ(RuleOf(state), FromSp(0, 0, 0));
  state.cfa_offset = 32;
  state.ra = At(-24);
  state.fp = At(-32);
  EXPECT_EQ(RuleOf(state), FromSp(4, 3, 4));
}

TEST_F(SpecialRulesTest, ASignalsFrameIsSpecial) {
  entry_.is_signal_frame = true;
  EXPECT_TRUE(SpecialOf(Entered()).is_signal_frame);
  registers_ = DwarfRegistersOf(Architecture::kAarch64);
  CfiState state;
  state.cfa_register = kArmSp;
  state.lr = At(-40);
  EXPECT_EQ(SpecialOf(state).lr.offset, -40);
}

TEST_F(SpecialRulesTest, EqualRulesHaveOneNumber) {
  CfiState state = Entered();
  state.cfa_offset = 12;
  const UnwindRule first = RuleOf(state);
  state.cfa_offset = 20;
  const UnwindRule second = RuleOf(state);
  EXPECT_NE(first, second);
  state.cfa_offset = 12;
  EXPECT_EQ(RuleOf(state), first);
  EXPECT_EQ(rules_.Take().size(), 3u) << "with that of unknown code";
}

TEST_F(SpecialRulesTest, TooManyAreUnknown) {
  CfiState state = Entered();
  std::set<std::uint32_t> numbers;
  for (std::int64_t i = 0; i < 5000; ++i) {
    state.cfa_offset = 8 * i + 4;
    numbers.insert(RuleOf(state).bits());
  }
  EXPECT_TRUE(numbers.contains(UnwindRule::Unknown().bits()));
  EXPECT_GT(numbers.size(), 1000u);
  EXPECT_EQ(rules_.Take().size(), numbers.size());
}

TEST(SavedSpecialRegisterTest, SaysWhereItIs) {
  const DwarfRegisters registers = DwarfRegistersOf(Architecture::kX86_64);
  CfiState state = Entered();
  EXPECT_EQ(SavedSpecialRegisterOf(state, registers),
            (SavedRegister{.where = SavedRegister::kUnchanged}));
  state.special = At(-24);
  EXPECT_EQ(SavedSpecialRegisterOf(state, registers),
            (SavedRegister{.where = SavedRegister::kFromCfa, .distance = -24}));
  const Bytes from_sp = RegisterPlus(kRsp, 128);
  state.special = {.kind = Kind::kExpression, .number = 0, .expression = from_sp};
  EXPECT_EQ(SavedSpecialRegisterOf(state, registers),
            (SavedRegister{.where = SavedRegister::kFromSp, .distance = 128}));
}

TEST(SavedSpecialRegisterTest, IsUnknownWhereItCannotBeSaid) {
  const DwarfRegisters registers = DwarfRegistersOf(Architecture::kX86_64);
  CfiState state = Entered();
  for (const std::int64_t offset : {std::int64_t{1} << 29, -(std::int64_t{1} << 29),
                                    std::numeric_limits<std::int64_t>::min()}) {
    state.special = At(offset);
    EXPECT_EQ(SavedSpecialRegisterOf(state, registers), SavedRegister()) << offset;
  }
  for (const Kind kind : {Kind::kUndefined, Kind::kRegister, Kind::kUnsupported}) {
    state.special = Of(kind, kRbp);
    EXPECT_EQ(SavedSpecialRegisterOf(state, registers), SavedRegister());
  }
  for (const Bytes& expression : {RegisterPlus(kRbp, 8), Dereferenced(RegisterPlus(kRsp, 8))}) {
    state.special = {.kind = Kind::kExpression, .number = 0, .expression = expression};
    EXPECT_EQ(SavedSpecialRegisterOf(state, registers), SavedRegister());
  }
}

}  // namespace
}  // namespace strobe::testing
