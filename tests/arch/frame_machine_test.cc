#include "../../src/arch/frame_machine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace strobe::internal {
namespace {

DecodedFrame FrameAfter(std::vector<std::uint8_t> code) {
  FrameMachine machine({});
  for (std::span<const std::uint8_t> rest = code; !rest.empty();) {
    const FrameInstruction instruction = DecodeFrameInstruction(rest);
    if (instruction.bytes == 0) break;
    machine.Execute(instruction);
    rest = rest.subspan(instruction.bytes);
  }
  return machine.frame();
}

TEST(FrameMachine, FollowsAFrameWithAFramePointer) {
  EXPECT_TRUE(FrameAfter({}).is_left());
  const DecodedFrame pushed = FrameAfter({0x55});
  EXPECT_EQ(pushed.sp_depth, 16);
  EXPECT_EQ(pushed.fp, (KeptRegister{KeptRegister::kBoth, 16}));
  const DecodedFrame made = FrameAfter({0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xE4, 0xC0});
  EXPECT_EQ(made.sp_depth, DecodedFrame::kNot) << "aligned";
  EXPECT_EQ(made.fp_depth, 16);
  EXPECT_EQ(made.fp, (KeptRegister{KeptRegister::kOnStack, 16}));
  EXPECT_TRUE(FrameAfter({0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xE4, 0xC0, 0xC9}).is_left());
}

TEST(FrameMachine, FollowsRegistersThatAreUsedOtherwise) {
  // push %rbp; push %rbx; xor %ebp, %ebp; pop %rbx; pop %rbp
  EXPECT_EQ(FrameAfter({0x55, 0x53, 0x31, 0xED}).fp, (KeptRegister{KeptRegister::kOnStack, 16}));
  EXPECT_EQ(FrameAfter({0x55, 0x53, 0x31, 0xED}).fp_depth, DecodedFrame::kNot);
  EXPECT_TRUE(FrameAfter({0x55, 0x53, 0x31, 0xED, 0x5B, 0x5D}).is_left());
  EXPECT_EQ(FrameAfter({0x31, 0xED}).fp.state, KeptRegister::kLost);
  EXPECT_EQ(FrameAfter({0x55, 0x5B}).special.state, KeptRegister::kLost)
      << "what it pops is another's";
  // mov %rbp, -8(%rsp); xor %ebp, %ebp; mov -8(%rsp), %rbp
  EXPECT_EQ(FrameAfter({0x48, 0x89, 0x6C, 0x24, 0xF8, 0x31, 0xED}).fp.slot, 16);
  EXPECT_TRUE(FrameAfter({0x48, 0x89, 0x6C, 0x24, 0xF8, 0x31, 0xED, 0x48, 0x8B, 0x6C, 0x24, 0xF8})
                  .is_left());
}

TEST(FrameMachine, ForgetsWhatLiesBelowTheStackPointer) {
  // push %rbp; pop %rbp; push %rax; xor %ebp, %ebp
  EXPECT_EQ(FrameAfter({0x55, 0x5D, 0x50, 0x31, 0xED}).fp.state, KeptRegister::kLost);
}

TEST(FrameMachine, CountsACallForItsAddress) {
  EXPECT_EQ(FrameAfter({0xE8, 0, 0, 0, 0}).sp_depth, 16);
  EXPECT_EQ(FrameAfter({0xE8, 1, 0, 0, 0}).sp_depth, 8);
}

TEST(FrameMachine, KeepsWhatBothPathsKnow) {
  const DecodedFrame plain = FrameAfter({});
  const DecodedFrame pushed = FrameAfter({0x55});
  EXPECT_EQ(Meet(plain, plain), plain);
  EXPECT_EQ(Meet(plain, pushed).sp_depth, DecodedFrame::kNot);
  EXPECT_EQ(Meet(plain, pushed).fp.state, KeptRegister::kInRegister);
  EXPECT_EQ(Meet(pushed, FrameAfter({0x55, 0x31, 0xED})).fp,
            (KeptRegister{KeptRegister::kOnStack, 16}));
  EXPECT_EQ(Meet(plain, FrameAfter({0x55, 0x31, 0xED})).fp.state, KeptRegister::kLost);
}

}  // namespace
}  // namespace strobe::internal
