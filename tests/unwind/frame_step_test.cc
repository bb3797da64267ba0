#include "strobe/unwind/frame_step.h"

#include <gtest/gtest.h>

#include <array>

#include "strobe/testing/fake_stack.h"

namespace strobe::testing {
namespace {

constexpr Address kPc = 0x400000;

template <class Registers>
FrameState<Registers> State(Address fp) {
  FrameState<Registers> state;
  state.registers.pc = kPc;
  state.registers.sp = 0x7000;
  state.registers.fp = fp;
  return state;
}

TEST(FramePointerStep, TakesOneFrame) {
  const FakeStack stack(0x7000, {0xAAAA, 0x7100, 0x401111});
  auto state = State<X86_64Registers>(0x7008);
  EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kCaller);
  EXPECT_EQ(state.registers.pc, 0x401111u);
  EXPECT_EQ(state.registers.sp, 0x7018u);
  EXPECT_EQ(state.registers.fp, 0x7100u);
  EXPECT_EQ(state.code_address(), 0x401110u) << "inside the call";
}

TEST(FramePointerStep, StripsSignaturesOnAarch64) {
  const FakeStack stack(0x7000, {0x7100, 0x0055000000401110});
  auto state = State<Aarch64Registers>(0x7000);
  EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kCaller);
  EXPECT_EQ(state.registers.pc, 0x401110u);
}

TEST(FramePointerStep, EndsWhereTheChainEnds) {
  const FakeStack stack(0x7000, {0x7100, 0});
  auto state = State<X86_64Registers>(0x7000);
  EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kEnd) << "it has no caller";
}

// Code with another use for the register leaves any number in it, zero as well: it looks the same
// as a chain's end.
TEST(FramePointerStep, ARegisterThatHoldsNoFrameIsNoEnd) {
  const FakeStack stack(0x7000, {0x7100, 0x401111});
  for (const Address fp : {Address{0}, Address{1}, internal::kLowestCode - 1}) {
    auto x86_64 = State<X86_64Registers>(fp);
    EXPECT_EQ(FramePointerStep().Step(x86_64, stack), StepResult::kUnknown) << fp;
    auto aarch64 = State<Aarch64Registers>(fp);
    EXPECT_EQ(FramePointerStep().Step(aarch64, stack), StepResult::kUnknown) << fp;
  }
}

TEST(FramePointerStep, RefusesWhatCannotBeAFrame) {
  const FakeStack stack(0x7000, {0x7100, 0x401111, 0x7100, 1, 0x7100, Address{1} << 47});
  for (const Address fp : {Address{0x6FF8}, Address{0x7004}, Address{0x7010}, Address{0x7020},
                           Address{0x7028}, ~Address{0}}) {
    auto state = State<X86_64Registers>(fp);
    EXPECT_EQ(FramePointerStep().Step(state, stack), StepResult::kBroken) << std::hex << fp;
  }
}

// Gives the next of some results, and counts the pc on.
struct Script {
  std::vector<StepResult> results;
  std::size_t next = 0;
  template <class State>
  StepResult operator()(State& state) noexcept {
    const StepResult result = results[next++];
    state.registers.pc += 0x10;
    state.is_exact = next == 2;
    return result;
  }
};

TEST(WalkFrames, WritesExactPcsAndAddressesInsideCalls) {
  std::array<Address, 8> output{};
  const WalkResult result = internal::WalkFrames(
      X86_64Registers{.pc = kPc}, output,
      Script{{StepResult::kCaller, StepResult::kCaller, StepResult::kCaller, StepResult::kEnd}});
  EXPECT_EQ(result.end, StackEnd::kComplete);
  ASSERT_EQ(result.count, 4u);
  EXPECT_EQ(output[0], kPc);
  EXPECT_EQ(output[1], kPc + 0x0F);
  EXPECT_EQ(output[2], kPc + 0x20) << "where a signal interrupted it";
  EXPECT_EQ(output[3], kPc + 0x2F);
}

TEST(WalkFrames, SaysWhyItEnded) {
  std::array<Address, 8> output{};
  const auto end_of = [&](StepResult result, std::size_t limit) {
    return internal::WalkFrames(X86_64Registers{.pc = kPc}, std::span(output).first(limit),
                                Script{{result, StepResult::kEnd}})
        .end;
  };
  EXPECT_EQ(end_of(StepResult::kEnd, 1), StackEnd::kComplete);
  EXPECT_EQ(end_of(StepResult::kBroken, 1), StackEnd::kBroken);
  EXPECT_EQ(end_of(StepResult::kUnknown, 1), StackEnd::kNoUnwindInfo);
  EXPECT_EQ(end_of(StepResult::kCaller, 1), StackEnd::kTruncated);
  EXPECT_EQ(end_of(StepResult::kCaller, 2), StackEnd::kComplete);
  EXPECT_EQ(end_of(StepResult::kEnd, 0), StackEnd::kTruncated);
}

TEST(WalkFrames, StopsWhereSomethingIsPendingAndGoesOnFromThere) {
  std::array<Address, 8> output{};
  const WalkResult stopped =
      internal::WalkFrames(X86_64Registers{.pc = kPc, .sp = 0x7000, .fp = 0x7100}, output,
                           [](FrameState<X86_64Registers>& state) noexcept {
                             if (state.registers.pc != kPc) return StepResult::kPending;
                             state.registers = {.pc = kPc + 0x10, .sp = 0x7010, .fp = 0x7100};
                             state.is_exact = false;
                             return StepResult::kCaller;
                           });
  EXPECT_TRUE(stopped.is_pending);
  EXPECT_EQ(stopped.end, StackEnd::kNoUnwindInfo) << "for a walk that goes no further";
  EXPECT_EQ(stopped.count, 2u);
  EXPECT_EQ(stopped.stop.pc, kPc + 0x10);
  EXPECT_EQ(stopped.stop.sp, 0x7010u);
  EXPECT_EQ(stopped.stop.fp, 0x7100u);
  EXPECT_FALSE(stopped.stop.is_exact);

  const FrameState<X86_64Registers> from{.registers = {.pc = stopped.stop.pc},
                                         .is_exact = stopped.stop.is_exact};
  const WalkResult rest =
      internal::WalkFrames(from, output, Script{{StepResult::kCaller, StepResult::kEnd}});
  EXPECT_FALSE(rest.is_pending);
  EXPECT_EQ(rest.count, 2u);
  EXPECT_EQ(output[0], kPc + 0x0F) << "the frame that the first walk stopped at, once more";
}

}  // namespace
}  // namespace strobe::testing
