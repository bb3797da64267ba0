#include "strobe/unwind/memo_check.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "walk_machine.h"

namespace strobe::testing {
namespace {

class MemoCheckTest : public WalkMachineTest {
 protected:
  // Frames of the memo, from the root on, that are unchanged.
  std::size_t Unchanged() {
    const auto step = [this](FrameState<X86_64Registers>& state) noexcept {
      return machine_.Step(state);
    };
    const CopiedStackMemory memory = machine_.memory();
    const internal::MemoCheck<X86_64Registers, CopiedStackMemory, decltype(step)> check(
        machine_.registers(), memory, walker_.memo(), step);
    return internal::WalkMemo::kMaxFrames - check.FirstUnchanged();
  }
};

TEST_F(MemoCheckTest, AnEmptyMemoHasNothingUnchanged) {
  Call({1, 2, 3});
  EXPECT_EQ(Unchanged(), 0u);
}

TEST_F(MemoCheckTest, FindsTheWholeStackWhereNothingHasChanged) {
  Call({1, 2, 3, 1});
  walker_.Walk();
  EXPECT_EQ(Unchanged(), 5u);
}

TEST_F(MemoCheckTest, FindsTheFramesBeyondAWordThatHasChanged) {
  Call({1, 2});
  const Address return_address = machine_.registers().sp + 2 * 8;
  Call({3, 1});
  walker_.Walk();
  ++machine_.Word(return_address);
  EXPECT_EQ(Unchanged(), 2u) << "for a walk that reaches function 1 in another way";
}

TEST_F(MemoCheckTest, AsksAStepWhereNoWordTells) {
  // Function 1 leads to its caller as its rule says, but its step does not give the rule.
  Machine machine(
      {{UnwindRule::Stop(), false}, {UnwindRule::Frame(UnwindRule::Kind::kFromSp, 3, 1, 0), true}});
  Walker walker(machine);
  for (int i = 0; i < 5; ++i) machine.Call(1, 100);
  walker.Walk();
  EXPECT_EQ(walker.Walk().shared, 5u) << "the leaf's registers are not all in the memo";
}

TEST_F(MemoCheckTest, WhatLiesBeyondTheOneFrameThatDiffersIsShared) {
  constexpr std::size_t kCalls = 23;
  std::vector<Address> pc_addresses;
  for (std::size_t i = 0; i < kCalls; ++i) {
    pc_addresses.push_back(machine_.registers().sp - 8);
    Call({i % 7 == 5 ? 3 : 1 + i % 2});
  }
  for (std::size_t callers = 0; callers < kCalls; ++callers) {
    walker_.Walk();
    EXPECT_EQ(walker_.Walk().shared, kCalls + 1);
    ++machine_.Word(pc_addresses[callers]);
    EXPECT_EQ(walker_.Walk().shared, callers);
    --machine_.Word(pc_addresses[callers]);
  }
}

TEST_F(MemoCheckTest, AFramePointerThatNobodyNeedsMayDiffer) {
  Call({1, 1, 2});
  walker_.Walk();
  machine_.Return();
  machine_.Call(2, 0x1234567 + 2000);  // another value in fp; what was saved is the same
  EXPECT_EQ(walker_.Walk().shared, 4u);
}

TEST_F(MemoCheckTest, AFramePointerThatACallerNeedsMayNot) {
  Call({3, 1, 2});
  const Address saved = machine_.registers().sp + 8;
  walker_.Walk();
  EXPECT_EQ(walker_.Walk().shared, 4u);
  machine_.Word(saved) += 16;
  EXPECT_LT(walker_.Walk().shared, 4u);
}

}  // namespace
}  // namespace strobe::testing
