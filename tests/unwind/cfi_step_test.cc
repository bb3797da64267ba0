#include "strobe/unwind/cfi_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/testing/incremental_unwinder_conformance.h"
#include "strobe/testing/resumable_unwinder_conformance.h"
#include "strobe/testing/unwinder_conformance.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_step.h"
#include "strobe/unwind/known_code.h"
#include "walk_trace.h"

namespace strobe::testing {
namespace {

using Base = SpecialRule::Base;
using Where = SpecialRule::Where;
using Location = SpecialRule::Location;

using Cfi = ChainUnwinder<CfiStep>;

constexpr Location kReturnBelowCfa{
    .where = Where::kMemory, .base = Base::kCfa, .other = 0, .offset = -8};

SpecialRule SignalFrame() {
  return {.cfa = SpecialRule::Cfa::kMemory,
          .cfa_base = Base::kSp,
          .cfa_offset = 16,
          .ra = {.where = Where::kMemory, .base = Base::kSp, .offset = 24},
          .fp = {.where = Where::kMemory, .base = Base::kSp, .offset = 8},
          .is_signal_frame = true};
}

SpecialRule ByExpression(const std::vector<std::uint8_t>& expression) {
  SpecialRule rule{.cfa = SpecialRule::Cfa::kExpression, .ra = kReturnBelowCfa, .fp = {}};
  rule.expression.size = static_cast<std::uint8_t>(expression.size());
  std::copy(expression.begin(), expression.end(), rule.expression.bytes.begin());
  return rule;
}

// breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus.
SpecialRule PltEntry() {
  return ByExpression({0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22});
}

// Every kind of rule, each with 0x100 bytes of text from kText on.
enum Rule : std::uint32_t {
  kLeaf,
  kTwoWords,
  kSavesFp,
  kByFp,
  kSaveThenFp,
  kStop,
  kUnknown,
  kPlt,
  kSignal,
  kAligned,
  kOther,
  kLink,
  kByExpression,
  kByRegister,
  kLost,
  kCallsLeaf,
  kRuleCount
};

UnwindModules MakeModules() {
  const std::vector<SpecialRule> specials = {
      SpecialRule(),
      PltEntry(),
      SignalFrame(),
      {.cfa = SpecialRule::Cfa::kMemory,
       .cfa_base = Base::kFp,
       .cfa_offset = -8,
       .ra = kReturnBelowCfa,
       .fp = {Where::kMemory, Base::kFp, 0, 0}},
      {.cfa = SpecialRule::Cfa::kOffset,
       .cfa_base = Base::kOther,
       .cfa_other = 12,
       .cfa_offset = 16,
       .ra = kReturnBelowCfa,
       .fp = {}},
      // breg7 8; deref; plus_uconst 8: the caller's sp lies at [sp + 8].
      ByExpression({0x77, 8, 0x06, 0x23, 8}),
      // breg7 0; breg9 0; lit8; mul; plus; deref; plus_uconst 8.
      ByExpression({0x77, 0, 0x79, 0, 0x38, 0x1E, 0x22, 0x06, 0x23, 8}),
      {.cfa = SpecialRule::Cfa::kLost, .ra = {}, .fp = {}},
      {.cfa = SpecialRule::Cfa::kOffset,
       .cfa_base = Base::kKept,
       .cfa_other = 12,
       .cfa_offset = 16,
       .ra = kReturnBelowCfa,
       .fp = {}},
  };
  const UnwindRule rules[kRuleCount] = {FromSp(1),
                                        FromSp(2),
                                        FromSp(3, 1, 2),
                                        FromFp(2, 1, 2),
                                        FromSp(2, 1, 2),
                                        UnwindRule::Stop(),
                                        UnwindRule::Unknown(),
                                        UnwindRule::Special(1),
                                        UnwindRule::Special(2),
                                        UnwindRule::Special(3),
                                        UnwindRule::Special(4),
                                        FromSp(0, 0),
                                        UnwindRule::Special(5),
                                        UnwindRule::Special(6),
                                        UnwindRule::Special(7),
                                        UnwindRule::Special(8)};
  std::vector<UnwindRow> rows;
  for (std::uint32_t i = 0; i < kRuleCount; ++i) rows.push_back({i * 0x100, rules[i]});
  rows.push_back({kRuleCount * 0x100, UnwindRule::Unknown()});
  return UnwindModules(
      {{kText, kText + 0x2000, std::make_shared<UnwindTable>(0x2000, rows, specials)}});
}

const UnwindModules& SharedModules() {
  static const UnwindModules modules = MakeModules();
  return modules;
}

// An address in the code of `rule`; as a return address, it stands behind the call.
constexpr Address In(Rule rule, Address offset = 0x80) { return kText + rule * 0x100 + offset; }

template <class Registers>
Trace WalkCfi(const Registers& registers, const FakeStack& stack, std::size_t limit = 16) {
  return TraceOf(Cfi(&SharedModules()), registers, stack, limit);
}

TEST(CfiStep, WalksBySpAndByFp) {
  const FakeStack stack(kBase, {0xAAAA, In(kSavesFp), 0xBBBB, 0x7040, In(kByFp), 0xCCCC, 0xDDDD,
                                0xEEEE, 0x1234, In(kTwoWords), 0xFFFF, In(kStop)});
  EXPECT_EQ(
      WalkCfi(X86_64Registers{In(kTwoWords), kBase, 0x1111}, stack),
      (Trace{{In(kTwoWords), In(kSavesFp) - 1, In(kByFp) - 1, In(kTwoWords) - 1, In(kStop) - 1},
             StackEnd::kComplete}));
}

TEST(CfiStep, ACallAtTheEndOfAFunctionIsLookedUpInIt) {
  // The return address is the first byte of the next function, whose rule is another one.
  const FakeStack stack(kBase, {In(kTwoWords, 0), In(kStop)});
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, stack).frames,
            (std::vector<Address>{In(kLeaf), In(kTwoWords, 0) - 1, In(kStop) - 1}));
}

TEST(CfiStep, PltEntriesBeforeAndAfterTheirPush) {
  const FakeStack stack(kBase, {In(kStop), In(kTwoWords), 0xAAAA, In(kStop)});
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kPlt, 0x80), kBase, 0}, stack).frames,
            (std::vector<Address>{In(kPlt, 0x80), In(kStop) - 1}));
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kPlt, 0x8A), kBase, 0}, stack).frames.at(1), In(kStop) - 1);
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kPlt, 0x8B), kBase, 0}, stack).frames,
            (std::vector<Address>{In(kPlt, 0x8B), In(kTwoWords) - 1, In(kStop) - 1}));
}

TEST(CfiStep, AFrameMayKeepItsCallersStackPointerInASlot) {
  const FakeStack stack(kBase, {0xAAAA, kBase + 24, 0xBBBB, In(kTwoWords), 0xCCCC, In(kStop)});
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kByExpression), kBase, 0}, stack),
            (Trace{{In(kByExpression), In(kTwoWords) - 1, In(kStop) - 1}, StackEnd::kComplete}));
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kByExpression), kBase - 8, 0}, stack).end, StackEnd::kBroken)
      << "a slot outside of the stack";
}

TEST(CfiStep, WhereASlotIsMayDependOnARegisterOfTheInnermostFrame) {
  const FakeStack stack(kBase, {0xAAAA, kBase + 16, In(kTwoWords), 0xBBBB, In(kStop)});
  std::array<Address, kX86_64GeneralRegisters> words{};
  words[9] = 1;
  const X86_64GeneralRegisters general(words.data());
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kByRegister), kBase, 0, &general}, stack),
            (Trace{{In(kByRegister), In(kTwoWords) - 1, In(kStop) - 1}, StackEnd::kComplete}));
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kByRegister), kBase, 0}, stack).end, StackEnd::kNoUnwindInfo)
      << "a register that is not known";
}

TEST(CfiStep, NoOtherStepLeavesAFrameThatIsLost) {
  using Both = ChainUnwinder<CfiStep, FramePointerStep>;
  const FakeStack stack(kBase, {kBase + 16, In(kTwoWords), kBase + 32, In(kStop)});
  EXPECT_EQ(TraceOf(Both(&SharedModules()), X86_64Registers{In(kLost), kBase, kBase}, stack, 16),
            (Trace{{In(kLost)}, StackEnd::kNoUnwindInfo}));
}

TEST(CfiStep, ACallThroughANullPointerHasLeftItsReturnAddress) {
  const FakeStack stack(kBase, {In(kTwoWords), 0xAAAA, In(kStop)});
  for (const Address pc : {0, 16}) {
    EXPECT_EQ(WalkCfi(X86_64Registers{pc, kBase, 0}, stack),
              (Trace{{pc, In(kTwoWords) - 1, In(kStop) - 1}, StackEnd::kComplete}));
  }
  EXPECT_EQ(WalkCfi(X86_64Registers{0, kBase + 8, 0}, stack), (Trace{{0}, StackEnd::kBroken}))
      << "where no code is";
}

TEST(CfiStep, ASignalMayInterruptACallThroughANullPointer) {
  const FakeStack stack(kBase, {0xAAAA, 0xBBBB, kBase + 32, 0, In(kTwoWords), 0xCCCC, In(kStop)});
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kSignal), kBase, 0}, stack),
            (Trace{{In(kSignal), 0, In(kTwoWords) - 1, In(kStop) - 1}, StackEnd::kComplete}));
}

TEST(CfiStep, SignalFramesGiveTheExactPcAndAnyStack) {
  // The handler's stack lies above what it interrupted; 0x7000 holds what was interrupted, on entry
  // to a function.
  FakeStack stack(kBase, {In(kStop), 0xAAAA, In(kSignal), 0x1111, 0x2222, kBase, In(kLeaf, 0)});
  EXPECT_EQ(
      WalkCfi(X86_64Registers{In(kTwoWords), kBase + 8, 0}, stack),
      (Trace{{In(kTwoWords), In(kSignal) - 1, In(kLeaf, 0), In(kStop) - 1}, StackEnd::kComplete}));
  // The same the other way round.
  FakeStack below(kBase, {In(kSignal), 0x1111, 0x2222, 0x7028, In(kLeaf, 0), In(kStop)});
  EXPECT_EQ(
      WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, below),
      (Trace{{In(kLeaf), In(kSignal) - 1, In(kLeaf, 0), In(kStop) - 1}, StackEnd::kComplete}));
}

TEST(CfiStep, SignalFramesThatLeadToThemselvesEnd) {
  const FakeStack stack(kBase, {In(kSignal), 0x1111, 0x2222, kBase + 8, In(kSignal)});
  const Trace trace = WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, stack, kMaxFramesLimit);
  EXPECT_EQ(trace.end, StackEnd::kBroken);
  EXPECT_LT(trace.frames.size(), 32u);
}

TEST(CfiStep, CfaInMemory) {
  const FakeStack stack(kBase, {0xAAAA, 0x7028, 0x9999, 0xBBBB, In(kStop)});
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kAligned), kBase, 0x7010}, stack).frames,
            (std::vector<Address>{In(kAligned), In(kStop) - 1}));
}

// A trampoline of lazy binding, whose CFA is rbx + 16; a function that saves rbx two words below
// its CFA of four words, one that leaves it alone, and the outermost.
enum LazyRule : std::uint32_t {
  kTrampoline,
  kSavesRbx,
  kKeepsRbx,
  kLosesRbx,
  kOutermost,
  kLazyRuleCount
};
constexpr Address InLazy(LazyRule rule) { return kText + rule * 0x100 + 0x80; }

// In two pieces: the trampoline, and all that it calls.
UnwindModules LazyModules(bool has_callees = true,
                          std::shared_ptr<RuleCache> cache = std::make_shared<RuleCache>()) {
  const std::vector<SpecialRule> specials = {SpecialRule(),
                                             {.cfa = SpecialRule::Cfa::kOffset,
                                              .cfa_base = Base::kOther,
                                              .cfa_other = kRbx,
                                              .cfa_offset = 16,
                                              .ra = kReturnBelowCfa,
                                              .fp = {}}};
  const std::vector<UnwindRow> trampoline = {
      {0, UnwindRule::Special(1), {.where = SavedRegister::kFromCfa, .distance = -16}}};
  constexpr std::uint32_t kCallees = kSavesRbx * 0x100;
  const std::vector<UnwindRow> callees = {
      {kSavesRbx * 0x100 - kCallees,
       FromSp(4),
       {.where = SavedRegister::kFromCfa, .distance = -16}},
      {kKeepsRbx * 0x100 - kCallees, FromSp(2), {.where = SavedRegister::kUnchanged}},
      {kLosesRbx * 0x100 - kCallees, FromSp(2), {.where = SavedRegister::kUnknown}},
      {kOutermost * 0x100 - kCallees, UnwindRule::Stop()}};
  return UnwindModules(
      {{kText, kText + kCallees, std::make_shared<UnwindTable>(kCallees, trampoline, specials)},
       {kText + kCallees, kText + 0x1000,
        has_callees ? std::make_shared<UnwindTable>(0x1000, callees, specials) : nullptr}},
      true, std::move(cache));
}

Trace WalkLazy(LazyRule leaf, const FakeStack& stack, Address rbx, bool has_general = true,
               const UnwindModules& modules = LazyModules()) {
  Address words[kX86_64GeneralRegisters] = {};
  words[kX86_64Rbx] = rbx;
  const X86_64GeneralRegisters general(words);
  const X86_64Registers registers{
      .pc = InLazy(leaf), .sp = kBase, .fp = 0, .general = has_general ? &general : nullptr};
  return TraceOf(Cfi(&modules), registers, stack);
}

TEST(CfiStep, CountsFromAnyRegisterOfTheInnermostFrame) {
  const FakeStack stack(kBase, {0, 0, 0, InLazy(kOutermost)});
  EXPECT_EQ(WalkLazy(kTrampoline, stack, 0x7010),
            (Trace{{InLazy(kTrampoline), InLazy(kOutermost) - 1}, StackEnd::kComplete}));
  EXPECT_EQ(WalkLazy(kTrampoline, stack, 0x7010, false).end, StackEnd::kNoUnwindInfo);
}

TEST(CfiStep, FindsRbxWhereInnerFramesSavedIt) {
  const std::vector<Address> expected = {InLazy(kKeepsRbx), InLazy(kSavesRbx) - 1,
                                         InLazy(kTrampoline) - 1, InLazy(kOutermost) - 1};
  // The leaf, a frame that saves rbx at +0x20, then the trampoline's realigned frame.
  const FakeStack stack(kBase, {0, InLazy(kSavesRbx), 0, 0, 0x7050, InLazy(kTrampoline), 0, 0, 0, 0,
                                0, InLazy(kOutermost)});
  EXPECT_EQ(WalkLazy(kKeepsRbx, stack, 0xBAD), (Trace{expected, StackEnd::kComplete}));
  // No frame has saved rbx: its value is still in the register.
  const FakeStack kept(kBase, {0, InLazy(kTrampoline), 0, 0, 0, InLazy(kOutermost)});
  EXPECT_EQ(WalkLazy(kKeepsRbx, kept, 0x7020).frames.back(), InLazy(kOutermost) - 1);
  EXPECT_EQ(WalkLazy(kKeepsRbx, kept, 0x7020, false).end, StackEnd::kNoUnwindInfo);
}

// Another thread's walk, by a later snapshot, has put the rules of code into the cache whose table
// is not in this one.
TEST(CfiStep, RbxIsLostWhereItsTableIsNotThereYet) {
  const FakeStack stack(kBase, {0, InLazy(kSavesRbx), 0, 0, 0x7050, InLazy(kTrampoline), 0, 0, 0, 0,
                                0, InLazy(kOutermost)});
  const auto cache = std::make_shared<RuleCache>();
  EXPECT_EQ(WalkLazy(kKeepsRbx, stack, 0xBAD, true, LazyModules(true, cache)).frames.size(), 4u);
  const Trace early = WalkLazy(kKeepsRbx, stack, 0xBAD, true, LazyModules(false, cache));
  EXPECT_EQ(early, (Trace{{InLazy(kKeepsRbx), InLazy(kSavesRbx) - 1, InLazy(kTrampoline) - 1},
                          StackEnd::kNoUnwindInfo}));
}

TEST(CfiStep, RbxThatSomebodyLostIsNotInvented) {
  const FakeStack stack(kBase, {0, InLazy(kTrampoline), 0, 0, 0, InLazy(kOutermost)});
  EXPECT_EQ(WalkLazy(kLosesRbx, stack, 0x7020),
            (Trace{{InLazy(kLosesRbx), InLazy(kTrampoline) - 1}, StackEnd::kNoUnwindInfo}));
}

TEST(CfiStep, NestedTrampolinesEachGetTheirRbx) {
  // The outer trampoline's rbx was saved by the inner one, two words below its CFA.
  const FakeStack stack(kBase, {0, InLazy(kTrampoline), 0x7040, InLazy(kTrampoline), 0, 0, 0, 0, 0,
                                InLazy(kOutermost)});
  EXPECT_EQ(WalkLazy(kKeepsRbx, stack, 0x7010).frames,
            (std::vector<Address>{InLazy(kKeepsRbx), InLazy(kTrampoline) - 1,
                                  InLazy(kTrampoline) - 1, InLazy(kOutermost) - 1}));
}

// The walk of a frame by r12, which the code that it calls leaves alone.
Trace WalkKept(Rule innermost, Address r12, const FakeStack& stack, bool has_general = true) {
  Address words[kX86_64GeneralRegisters] = {};
  words[12] = r12;
  const X86_64GeneralRegisters general(words);
  const X86_64Registers registers{
      .pc = In(innermost), .sp = kBase, .fp = 0, .general = has_general ? &general : nullptr};
  return WalkCfi(registers, stack);
}

TEST(CfiStep, CountsFromARegisterThatWhatIsCalledLeavesAlone) {
  const FakeStack stack(kBase, {In(kCallsLeaf), 0, 0, In(kStop)});
  EXPECT_EQ(WalkKept(kLeaf, 0x7010, stack),
            (Trace{{In(kLeaf), In(kCallsLeaf) - 1, In(kStop) - 1}, StackEnd::kComplete}));
  EXPECT_EQ(WalkKept(kLeaf, 0x7010, stack, /*has_general=*/false).end, StackEnd::kNoUnwindInfo);
  // The frame is the second that was called, or the innermost, about to call.
  const FakeStack deep(kBase, {In(kTwoWords), 0, In(kCallsLeaf), 0, 0, In(kStop)});
  EXPECT_EQ(
      WalkKept(kLeaf, 0x7020, deep).frames,
      (std::vector<Address>{In(kLeaf), In(kTwoWords) - 1, In(kCallsLeaf) - 1, In(kStop) - 1}));
  EXPECT_EQ(WalkKept(kCallsLeaf, 0x7010, stack).frames.back(), In(kStop) - 1);
}

TEST(CfiStep, ARegisterOfASignalsHandlerIsNotTheCallers) {
  const FakeStack stack(
      kBase, {In(kSignal), 0x1111, 0x2222, 0x7028, In(kLeaf, 0), In(kCallsLeaf), 0, 0, In(kStop)});
  EXPECT_EQ(WalkKept(kLeaf, 0x7038, stack),
            (Trace{{In(kLeaf), In(kSignal) - 1, In(kLeaf, 0), In(kCallsLeaf) - 1},
                   StackEnd::kNoUnwindInfo}));
}

TEST(CfiStep, LinkRegisterHoldsTheCallerOfALeafOnly) {
  const FakeStack stack(kBase, {0xAAAA, In(kStop)});
  EXPECT_EQ(
      WalkCfi(Aarch64Registers{In(kLink), kBase, 0, In(kTwoWords) | 0x0055000000000000}, stack),
      (Trace{{In(kLink), In(kTwoWords) - 1, In(kStop) - 1}, StackEnd::kComplete}));
  const FakeStack again(kBase, {0xAAAA, In(kLink)});
  EXPECT_EQ(WalkCfi(Aarch64Registers{In(kTwoWords), kBase, 0, In(kStop)}, again),
            (Trace{{In(kTwoWords), In(kLink) - 1}, StackEnd::kBroken}))
      << "a caller's link register was overwritten by its call";
}

TEST(CfiStep, ALeafThatASignalInterruptedHasItsOwnLinkRegister) {
  // siginfo and the kernel's part of ucontext stand before the registers; the trampoline's frame
  // begins at sp.
  constexpr Address kInterrupted = kBase + 0x1200;
  const std::vector<SpecialRule> specials = {SpecialRule(), Aarch64SignalFrame()};
  const std::vector<UnwindRow> rows = {
      {0, UnwindRule::Special(1)}, {0x100, FromSp(0, 0)}, {0x200, UnwindRule::Stop()}};
  const UnwindModules modules(
      {{kText, kText + 0x1000, std::make_shared<UnwindTable>(0x1000, rows, specials)}});
  std::vector<Address> words(0x300);
  words[544 / 8] = 0x1234;                                 // x29
  words[552 / 8] = (kText + 0x280) | Address{0x55} << 48;  // x30, signed
  words[560 / 8] = kInterrupted;                           // sp
  words[568 / 8] = kText + 0x100;                          // pc: a leaf at its first instruction
  std::vector<Address> output(8);
  // The handler is a leaf, too: its way back is in lr as the walk begins, and must not be taken for
  // the other's.
  const WalkResult walk = Cfi(&modules).Unwind(
      Aarch64Registers{.pc = kText + 0x180, .sp = kBase, .fp = 0, .lr = kText + 0x40},
      FakeStack(kBase, words), output);
  output.resize(walk.count);
  EXPECT_EQ(output, (std::vector<Address>{kText + 0x180, kText + 0x40 - 1, kText + 0x100,
                                          kText + 0x280 - 1}));
  EXPECT_EQ(walk.end, StackEnd::kComplete);
}

TEST(CfiStep, SaysWhyAWalkEnds) {
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kStop), kBase, 0}, FakeStack(kBase, {})).end,
            StackEnd::kComplete);
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, FakeStack(kBase, {0})).end,
            StackEnd::kComplete)
      << "a return address of 0 ends a stack";
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kUnknown), kBase, 0}, FakeStack(kBase, {})).end,
            StackEnd::kNoUnwindInfo);
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kOther), kBase, 0}, FakeStack(kBase, {})).end,
            StackEnd::kNoUnwindInfo);
  EXPECT_EQ(WalkCfi(X86_64Registers{kText / 2, kBase, 0}, FakeStack(kBase, {})).end,
            StackEnd::kNoUnwindInfo);
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, FakeStack(kBase, {})).end,
            StackEnd::kBroken);
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, FakeStack(kBase, {1})).end,
            StackEnd::kBroken)
      << "no code lies there";
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kByFp), kBase, kBase - 16}, FakeStack(kBase, {1, 2})).end,
            StackEnd::kBroken)
      << "callers lie above";
  EXPECT_EQ(WalkCfi(X86_64Registers{In(kLeaf), kBase, 0}, FakeStack(kBase, {In(kStop)}), 1).end,
            StackEnd::kTruncated);
  const Cfi without_modules;
  std::vector<Address> output(4);
  EXPECT_EQ(
      without_modules.Unwind(X86_64Registers{In(kLeaf), kBase, 0}, FakeStack(kBase, {}), output)
          .end,
      StackEnd::kNoUnwindInfo);
}

// Registers and stacks of any content over tables of any content: the walk ends, within its output
// (the sanitizers watch its reads).
TEST(CfiStep, HostileTables) {
  std::mt19937_64 random(5);
  const auto location = [&] {
    return Location{
        static_cast<Where>(random() % 4), static_cast<Base>(random() % 4),
        static_cast<std::uint8_t>(random() % 32),
        static_cast<std::int32_t>(random() % 4 == 0 ? random() : random() % 64 * 8 - 256)};
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<SpecialRule> specials(1);
    for (int i = 0; i < 20; ++i) {
      specials.push_back({.cfa = static_cast<SpecialRule::Cfa>(random() % 4),
                          .cfa_base = static_cast<Base>(random() % 4),
                          .cfa_other = static_cast<std::uint8_t>(random() % 32),
                          .cfa_offset = static_cast<std::int32_t>(
                              random() % 4 == 0 ? random() : random() % 64 * 8 - 256),
                          .ra = location(),
                          .fp = location(),
                          .is_signal_frame = random() % 3 == 0});
    }
    std::vector<UnwindRow> rows;
    for (std::uint32_t offset = 0; offset < 0x2000;
         offset += static_cast<std::uint32_t>(1 + random() % 64)) {
      const auto kind = static_cast<UnwindRule::Kind>(random() % 4);
      rows.push_back(
          {offset, kind == UnwindRule::Kind::kStop ? UnwindRule::Stop()
                   : kind == UnwindRule::Kind::kSpecial
                       ? UnwindRule::Special(static_cast<std::uint32_t>(random() % specials.size()))
                       : UnwindRule::Frame(kind, static_cast<std::uint32_t>(random() % 16),
                                           static_cast<std::uint32_t>(random() % 4),
                                           static_cast<std::uint32_t>(random() % 4))});
    }
    const UnwindModules modules(
        {{kText, kText + 0x2000, std::make_shared<UnwindTable>(0x2000, rows, specials)}});
    const auto word = [&]() -> Address {
      switch (random() % 4) {
        case 0: return kBase + random() % 600;
        case 1: return random();
        default: return kText + random() % 0x2000 / 4 * 4;
      }
    };
    for (int walk = 0; walk < 100; ++walk) {
      FakeStack stack(kBase, std::vector<Address>(64));
      for (Address& at : stack.words()) at = word();
      std::vector<Address> output(256);
      const Cfi unwinder(&modules);
      EXPECT_LE(
          unwinder.Unwind(X86_64Registers{word(), kBase + random() % 64 * 8, word()}, stack, output)
              .count,
          output.size());
      EXPECT_LE(unwinder
                    .Unwind(Aarch64Registers{word(), kBase + random() % 64 * 8, word(), word()},
                            stack, output)
                    .count,
                output.size());
    }
  }
}

// The suite makes its unwinders by default, with pcs from 0x400000 on and return addresses up to a
// MiB above.
class TabledUnwinder : public Cfi {
 public:
  TabledUnwinder() : Cfi(&Tables()) {}

 private:
  static const UnwindModules& Tables() {
    static const UnwindModules modules = [] {
      std::mt19937 random(3);
      const std::vector<SpecialRule> specials = {SpecialRule(), PltEntry(), SignalFrame()};
      std::vector<UnwindRow> rows;
      for (std::uint32_t offset = 0; offset < 0x100000; offset += 1 + random() % 64) {
        const std::uint32_t choice = random() % 40;
        rows.push_back({offset, choice == 0   ? UnwindRule::Unknown()
                                : choice == 1 ? UnwindRule::Stop()
                                : choice == 2 ? UnwindRule::Special(1)
                                : choice == 3 ? UnwindRule::Special(2)
                                              : UnwindRule::Frame(
                                                    random() % 4 == 0 ? UnwindRule::Kind::kFromFp
                                                                      : UnwindRule::Kind::kFromSp,
                                                    1 + random() % 4, 1, random() % 3)});
      }
      return UnwindModules(
          {{kText, kText + 0x100000, std::make_shared<UnwindTable>(0x100000, rows, specials)}});
    }();
    return modules;
  }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(WithoutTables, UnwinderConformance, Cfi);
INSTANTIATE_TYPED_TEST_SUITE_P(WithTables, UnwinderConformance, TabledUnwinder);
INSTANTIATE_TYPED_TEST_SUITE_P(WithTables, IncrementalUnwinderConformance, TabledUnwinder);
INSTANTIATE_TYPED_TEST_SUITE_P(Cfi, ResumableUnwinderConformance, Cfi);

}  // namespace strobe::testing
