#include "strobe/unwind/frame_step.h"

#include <gtest/gtest.h>

#include <array>

#include "strobe/testing/fakes/fake_stack.h"
#include "walk_trace.h"

namespace strobe::testing {
namespace {

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
  EXPECT_EQ(stopped.end, StackEnd::kNoUnwindInfo) << "for whoever goes no further";
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
