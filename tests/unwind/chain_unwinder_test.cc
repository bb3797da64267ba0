#include "strobe/unwind/chain_unwinder.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/testing/incremental_unwinder_conformance.h"
#include "strobe/testing/resumable_unwinder_conformance.h"
#include "strobe/testing/unwinder_conformance.h"
#include "walk_trace.h"

namespace strobe::testing {
namespace {

constexpr Address kUnknownCode = 0x500000;

// 0x100 bytes that save fp two words below the CFA, then the outermost function.
const UnwindModules& KnownModules() {
  static const UnwindModules modules(
      {{kText, kText + 0x1000,
        std::make_shared<UnwindTable>(
            0x1000, std::vector<UnwindRow>{{0, FromSp(3, 1, 2)}, {0x100, UnwindRule::Stop()}},
            std::vector<SpecialRule>{SpecialRule()})}});
  return modules;
}

using Chain = ChainUnwinder<CfiStep, FramePointerStep>;

Trace WalkChain(const Chain& chain, const X86_64Registers& registers, const FakeStack& stack) {
  return TraceOf(chain, registers, stack);
}

TEST(ChainUnwinder, FramePointersStandInWhereNothingElseIsKnown) {
  // known code, called by unknown code with a frame pointer, called by known code again.
  const FakeStack stack(kBase, {0xAAAA, 0x7020, kUnknownCode, 0xBBBB, 0x9999, kText + 0x180});
  const auto [frames, end] = WalkChain(Chain(&KnownModules()), {kText + 0x10, kBase, 0x1}, stack);
  EXPECT_EQ(frames, (std::vector<Address>{kText + 0x10, kUnknownCode - 1, kText + 0x17F}));
  EXPECT_EQ(end, StackEnd::kComplete);
}

TEST(ChainUnwinder, ABrokenFrameIsNotGivenToTheNext) {
  const FakeStack stack(kBase, {0x7010, kUnknownCode});
  const auto [frames, end] = WalkChain(Chain(&KnownModules()), {kText + 0x10, kBase, kBase}, stack);
  EXPECT_EQ(frames, (std::vector<Address>{kText + 0x10}))
      << "a frame chain would have given a caller here";
  EXPECT_EQ(end, StackEnd::kBroken);
}

TEST(ChainUnwinder, ACallerWhoseRegisterIsLostIsNotGivenToTheNext) {
  // A function that realigns its stack counts its CFA from r10, which only the innermost frame has.
  const std::vector<SpecialRule> specials = {SpecialRule(),
                                             {.cfa = SpecialRule::Cfa::kOffset,
                                              .cfa_base = SpecialRule::Base::kOther,
                                              .cfa_other = kR10,
                                              .cfa_offset = 8,
                                              .ra = {.where = SpecialRule::Where::kMemory,
                                                     .base = SpecialRule::Base::kCfa,
                                                     .other = 0,
                                                     .offset = -8},
                                              .fp = {}}};
  const std::vector<UnwindRow> rows = {{0, FromSp(2)}, {0x100, UnwindRule::Special(1)}};
  const UnwindModules modules(
      {{kText, kText + 0x1000, std::make_shared<UnwindTable>(0x1000, rows, specials)}});
  const FakeStack stack(kBase, {0, kText + 0x180, 0, kUnknownCode});
  const auto [frames, end] = WalkChain(Chain(&modules), {kText + 0x10, kBase, kBase + 0x10}, stack);
  EXPECT_EQ(frames, (std::vector<Address>{kText + 0x10, kText + 0x17F}))
      << "a frame chain would have given a caller here";
  EXPECT_EQ(end, StackEnd::kNoUnwindInfo);
}

TEST(ChainUnwinder, WhatIsNotBuiltYetIsLeftToNoPart) {
  const UnwindModules not_built({{kText, kText + 0x1000, nullptr}});
  const UnwindModules not_known({}, /*is_complete=*/false);
  const FakeStack stack(kBase, {0x7020, kUnknownCode, 0, 0, 0, 0});
  for (const UnwindModules* modules : {&not_built, &not_known}) {
    std::vector<Address> output(16);
    const WalkResult result =
        Chain(modules).Unwind(X86_64Registers{kText + 0x10, kBase, kBase}, stack, output);
    EXPECT_TRUE(result.is_pending);
    EXPECT_EQ(result.count, 1u) << "a frame chain would have given a caller here";
    EXPECT_EQ(result.stop.sp, kBase);
    EXPECT_TRUE(result.stop.is_exact);
  }
}

TEST(ChainUnwinder, WithoutModulesTheLastPartDoesAll) {
  const FakeStack stack(kBase, {kBase + 0x10, kUnknownCode, 0, 0});
  const auto [frames, end] = WalkChain(Chain(), {kText + 0x10, kBase, kBase}, stack);
  EXPECT_EQ(frames, (std::vector<Address>{kText + 0x10, kUnknownCode - 1}));
  EXPECT_EQ(end, StackEnd::kComplete);
}

TEST(ChainUnwinder, CodeWithNeitherTablesNorFramePointersIsNoStacksEnd) {
  const FakeStack stack(kBase, {0, kText + 0x180, 0, 0});
  const auto [leaf, leaf_end] = WalkChain(Chain(&KnownModules()), {kUnknownCode, kBase, 0}, stack);
  EXPECT_EQ(leaf, (std::vector<Address>{kUnknownCode}));
  EXPECT_EQ(leaf_end, StackEnd::kNoUnwindInfo);
  // The same where known code was called by it.
  const FakeStack called(kBase, {0, 0, kUnknownCode, 0, kText + 0x180});
  const auto [frames, end] = WalkChain(Chain(&KnownModules()), {kText + 0x10, kBase, 0}, called);
  EXPECT_EQ(frames, (std::vector<Address>{kText + 0x10, kUnknownCode - 1}));
  EXPECT_EQ(end, StackEnd::kNoUnwindInfo);
}

TEST(ChainUnwinder, SaysWhichFrameWasTheOutermost) {
  const FakeStack stack(kBase, {0, 0, kText + 0x180, 0});
  std::vector<Address> output(16);
  const WalkResult result =
      Chain(&KnownModules()).Unwind(X86_64Registers{kText + 0x10, kBase, 0}, stack, output);
  EXPECT_EQ(result.end, StackEnd::kComplete);
  EXPECT_EQ(result.stop.pc, kText + 0x180);
  EXPECT_EQ(result.stop.sp, kBase + 0x18);
  EXPECT_FALSE(result.is_pending);
}

TEST(ChainUnwinder, OrderIsThatOfItsParts) {
  const FakeStack stack(kBase, {0x7020, kUnknownCode, kText + 0x180, 0, 0, 0});
  const X86_64Registers registers{kText + 0x10, kBase, kBase};
  std::vector<Address> output(2);
  ChainUnwinder<FramePointerStep, CfiStep>(&KnownModules()).Unwind(registers, stack, output);
  EXPECT_EQ(output[1], kUnknownCode - 1);
  ChainUnwinder<CfiStep, FramePointerStep>(&KnownModules()).Unwind(registers, stack, output);
  EXPECT_EQ(output[1], kText + 0x17F);
}

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Chain, UnwinderConformance, Chain);
INSTANTIATE_TYPED_TEST_SUITE_P(Chain, IncrementalUnwinderConformance, Chain);
INSTANTIATE_TYPED_TEST_SUITE_P(Chain, ResumableUnwinderConformance, Chain);

}  // namespace strobe::testing
