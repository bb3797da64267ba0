#include "strobe/unwind/frame_pointer_step.h"

#include <gtest/gtest.h>

#include "strobe/testing/fakes/fake_stack.h"
#include "walk_trace.h"

namespace strobe::testing {
namespace {

template <class Registers>
FrameState<Registers> State(Address fp) {
  FrameState<Registers> state;
  state.registers.pc = kPc;
  state.registers.sp = kBase;
  state.registers.fp = fp;
  return state;
}

TEST(FramePointerStep, TakesOneFrame) {
  const FakeStack stack(kBase, {0xAAAA, 0x7100, 0x401111});
  auto state = State<X86_64Registers>(0x7008);
  EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kCaller);
  EXPECT_EQ(state.registers.pc, 0x401111u);
  EXPECT_EQ(state.registers.sp, 0x7018u);
  EXPECT_EQ(state.registers.fp, 0x7100u);
  EXPECT_EQ(state.code_address(), 0x401110u) << "inside the call";
}

TEST(FramePointerStep, StripsSignaturesOnAarch64) {
  const FakeStack stack(kBase, {0x7100, 0x0055000000401110});
  auto state = State<Aarch64Registers>(kBase);
  EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kCaller);
  EXPECT_EQ(state.registers.pc, 0x401110u);
}

TEST(FramePointerStep, EndsWhereTheChainEnds) {
  const FakeStack stack(kBase, {0x7100, 0});
  auto state = State<X86_64Registers>(kBase);
  EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kEnd) << "nobody called it";
}

// Code with another use for the register leaves any number in it, zero as well: it looks the same
// as a chain's end.
TEST(FramePointerStep, ARegisterThatHoldsNoFrameIsNoEnd) {
  const FakeStack stack(kBase, {0x7100, 0x401111});
  for (const Address fp : {Address{0}, Address{1}, kLowestCode - 1}) {
    auto x86_64 = State<X86_64Registers>(fp);
    EXPECT_EQ(FramePointerStep().Step(x86_64, stack), StepResult::kUnknown) << fp;
    auto aarch64 = State<Aarch64Registers>(fp);
    EXPECT_EQ(FramePointerStep().Step(aarch64, stack), StepResult::kUnknown) << fp;
  }
}

TEST(FramePointerStep, RefusesWhatCannotBeAFrame) {
  const FakeStack stack(kBase, {0x7100, 0x401111, 0x7100, 1, 0x7100, Address{1} << 47});
  for (const Address fp : {Address{0x6FF8}, Address{0x7004}, Address{0x7010}, Address{0x7020},
                           Address{0x7028}, ~Address{0}}) {
    auto state = State<X86_64Registers>(fp);
    EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kBroken) << std::hex << fp;
  }
}

}  // namespace
}  // namespace strobe::testing
