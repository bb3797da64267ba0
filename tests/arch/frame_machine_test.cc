#include "../../src/arch/frame_machine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace strobe::internal {
namespace {

DecodedFrame FrameAfter(std::vector<std::uint8_t> code) {
  FrameMachine machine({});
  std::uint32_t next = 0;
  for (std::span<const std::uint8_t> rest = code; !rest.empty();) {
    const FrameInstruction instruction = DecodeFrameInstruction(rest);
    if (instruction.bytes == 0) break;
    next += instruction.bytes;
    machine.Execute(instruction, next);
    rest = rest.subspan(instruction.bytes);
  }
  return machine.frame();
}

constexpr FramePlace Cfa(std::int32_t offset) { return {FramePlace::kCfa, offset}; }
constexpr FramePlace Anchor(std::int32_t offset) { return {FramePlace::kAnchor, offset}; }

TEST(FrameMachine, FollowsAFrameWithAFramePointer) {
  EXPECT_TRUE(FrameAfter({}).is_left());
  const DecodedFrame pushed = FrameAfter({0x55});
  EXPECT_EQ(pushed.sp(), Cfa(-16));
  EXPECT_EQ(pushed.fp, (KeptRegister{KeptRegister::kBoth, Cfa(-16)}));
  const DecodedFrame made = FrameAfter({0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xE4, 0xC0});
  EXPECT_EQ(made.sp(), Anchor(0)) << "aligned";
  EXPECT_EQ(made.places[DecodedFrame::kFp], Cfa(-16));
  EXPECT_EQ(made.fp, (KeptRegister{KeptRegister::kOnStack, Cfa(-16)}));
  EXPECT_TRUE(FrameAfter({0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xE4, 0xC0, 0xC9}).is_left());
}

TEST(FrameMachine, FollowsRegistersThatAreUsedOtherwise) {
  // push %rbp; push %rbx; xor %ebp, %ebp; pop %rbx; pop %rbp
  EXPECT_EQ(FrameAfter({0x55, 0x53, 0x31, 0xED}).fp,
            (KeptRegister{KeptRegister::kOnStack, Cfa(-16)}));
  EXPECT_EQ(FrameAfter({0x55, 0x53, 0x31, 0xED}).places[DecodedFrame::kFp], FramePlace());
  EXPECT_TRUE(FrameAfter({0x55, 0x53, 0x31, 0xED, 0x5B, 0x5D}).is_left());
  EXPECT_EQ(FrameAfter({0x31, 0xED}).fp.state, KeptRegister::kLost);
  EXPECT_EQ(FrameAfter({0x55, 0x5B}).special.state, KeptRegister::kLost)
      << "what it pops is another's";
  // mov %rbp, -8(%rsp); xor %ebp, %ebp; mov -8(%rsp), %rbp
  EXPECT_EQ(FrameAfter({0x48, 0x89, 0x6C, 0x24, 0xF8, 0x31, 0xED}).fp.slot, Cfa(-16));
  EXPECT_TRUE(FrameAfter({0x48, 0x89, 0x6C, 0x24, 0xF8, 0x31, 0xED, 0x48, 0x8B, 0x6C, 0x24, 0xF8})
                  .is_left());
}

// As libjpeg-turbo: push %rbp; mov %rsp, %rax; sub $4, %rsp; and $-16, %rsp; mov %rax, (%rsp);
// mov %rsp, %rbp; sub $64, %rsp | mov %rbp, %rsp; pop %rsp; pop %rbp.
TEST(FrameMachine, FollowsAnAlignedFrameByTheWordThatHasItsCallers) {
  std::vector<std::uint8_t> code = {0x55, 0x48, 0x89, 0xE0, 0x48, 0x83, 0xEC, 0x04,
                                    0x48, 0x83, 0xE4, 0xF0, 0x48, 0x89, 0x04, 0x24,
                                    0x48, 0x89, 0xE5, 0x48, 0x83, 0xEC, 0x40};
  const DecodedFrame aligned = FrameAfter(code);
  EXPECT_EQ(aligned.sp(), Anchor(-64));
  EXPECT_EQ(aligned.places[DecodedFrame::kFp], Anchor(0));
  EXPECT_EQ(aligned.link, Anchor(0));
  EXPECT_EQ(aligned.link_place, Cfa(-16));
  EXPECT_EQ(aligned.fp, (KeptRegister{KeptRegister::kOnStack, Cfa(-16)}));
  code.insert(code.end(), {0x48, 0x89, 0xEC, 0x5C, 0x5D});
  EXPECT_TRUE(FrameAfter(code).is_left());
}

// As gcc: lea 8(%rsp), %r10; and $-32, %rsp; push -8(%r10); push %rbp; mov %rsp, %rbp; push %r10
// | mov -8(%rbp), %r10; leave; lea -8(%r10), %rsp.
TEST(FrameMachine, FollowsAnAlignedFrameThatKeepsTheFramePointer) {
  std::vector<std::uint8_t> code = {0x4C, 0x8D, 0x54, 0x24, 0x08, 0x48, 0x83, 0xE4, 0xE0, 0x41,
                                    0xFF, 0x72, 0xF8, 0x55, 0x48, 0x89, 0xE5, 0x41, 0x52};
  const DecodedFrame aligned = FrameAfter(code);
  EXPECT_EQ(aligned.link, Anchor(-24));
  EXPECT_EQ(aligned.link_place, Cfa(0));
  EXPECT_EQ(aligned.fp, (KeptRegister{KeptRegister::kOnStack, Anchor(-16)}));
  code.insert(code.end(), {0x4C, 0x8B, 0x55, 0xF8, 0xC9, 0x49, 0x8D, 0x62, 0xF8});
  EXPECT_TRUE(FrameAfter(code).is_left());
}

TEST(FrameMachine, FollowsCopiesOfTheStackPointer) {
  // mov %rsp, %r12; and $-32, %rsp; sub $64, %rsp | mov %r12, %rsp
  std::vector<std::uint8_t> code = {0x49, 0x89, 0xE4, 0x48, 0x83, 0xE4,
                                    0xE0, 0x48, 0x83, 0xEC, 0x40};
  EXPECT_EQ(FrameAfter(code).places[12], Cfa(-8));
  code.insert(code.end(), {0x4C, 0x89, 0xE4});
  EXPECT_TRUE(FrameAfter(code).is_left());
  // mov %rsp, %rax; inc %rax
  EXPECT_EQ(FrameAfter({0x48, 0x89, 0xE0, 0x48, 0xFF, 0xC0}).places[0], FramePlace());
  FrameMachine machine(FrameAfter({0x48, 0x89, 0xE0}));
  machine.Forget(kScratchRegisters);
  EXPECT_EQ(machine.frame().places[0], FramePlace()) << "a call may have written it";
}

TEST(FrameMachine, ForgetsAWordThatIsOverwritten) {
  // mov %rsp, %rax; and $-16, %rsp; push %rax | mov %rcx, (%rsp)
  std::vector<std::uint8_t> code = {0x48, 0x89, 0xE0, 0x48, 0x83, 0xE4, 0xF0, 0x50};
  EXPECT_EQ(FrameAfter(code).link, Anchor(-8));
  code.insert(code.end(), {0x48, 0x89, 0x0C, 0x24});
  EXPECT_EQ(FrameAfter(code).link, FramePlace());
  // push %rbp; xor %ebp, %ebp; mov %rcx, (%rsp)
  EXPECT_EQ(FrameAfter({0x55, 0x31, 0xED, 0x48, 0x89, 0x0C, 0x24}).fp.state, KeptRegister::kLost);
}

// lea 16(%rip), %rdx; movslq (%rdx,%rcx,4), %rax; add %rdx, %rax
TEST(FrameMachine, FollowsTheTargetOfATable) {
  const std::vector<std::uint8_t> code = {0x48, 0x8D, 0x15, 0x10, 0, 0, 0, 0x48, 0x63, 0x04, 0x8A};
  EXPECT_EQ(FrameAfter(code).places[2], (FramePlace{FramePlace::kCode, 7 + 16}));
  EXPECT_EQ(FrameAfter(code).places[0].base, FramePlace::kEntry);
  std::vector<std::uint8_t> sum = code;
  sum.insert(sum.end(), {0x48, 0x01, 0xD0});
  EXPECT_EQ(FrameAfter(sum).places[0].base, FramePlace::kTarget);
  EXPECT_EQ(FrameAfter({0x48, 0x63, 0x04, 0x8A, 0x48, 0x01, 0xD0}).places[0], FramePlace())
      << "of nothing that is known";
}

TEST(FrameMachine, ForgetsWhatLiesBelowTheStackPointer) {
  // push %rbp; pop %rbp; push %rax; xor %ebp, %ebp
  EXPECT_EQ(FrameAfter({0x55, 0x5D, 0x50, 0x31, 0xED}).fp.state, KeptRegister::kLost);
}

TEST(FrameMachine, CountsACallForItsAddress) {
  EXPECT_EQ(FrameAfter({0xE8, 0, 0, 0, 0}).sp(), Cfa(-16));
  EXPECT_EQ(FrameAfter({0xE8, 1, 0, 0, 0}).sp(), Cfa(-8));
}

TEST(FrameMachine, KeepsWhatBothPathsKnow) {
  const DecodedFrame plain = FrameAfter({});
  const DecodedFrame pushed = FrameAfter({0x55});
  EXPECT_EQ(Meet(plain, plain), plain);
  EXPECT_EQ(Meet(plain, pushed).sp(), Anchor(0)) << "anywhere";
  EXPECT_EQ(Meet(plain, pushed).fp.state, KeptRegister::kInRegister);
  EXPECT_EQ(Meet(pushed, FrameAfter({0x55, 0x31, 0xED})).fp,
            (KeptRegister{KeptRegister::kOnStack, Cfa(-16)}));
  EXPECT_EQ(Meet(plain, FrameAfter({0x55, 0x31, 0xED})).fp.state, KeptRegister::kLost);
}

// What counts from the stack pointer is lost where that differs.
TEST(FrameMachine, KeepsNoWordOfAnAlignedFrameWhosePlaceIsNotKnown) {
  // mov %rsp, %rax; and $-16, %rsp; push %rax | push %rcx
  const DecodedFrame one = FrameAfter({0x48, 0x89, 0xE0, 0x48, 0x83, 0xE4, 0xF0, 0x50});
  const DecodedFrame other = FrameAfter({0x48, 0x89, 0xE0, 0x48, 0x83, 0xE4, 0xF0, 0x50, 0x51});
  EXPECT_EQ(Meet(one, one), one);
  EXPECT_EQ(Meet(one, other).link, FramePlace());
  EXPECT_EQ(Meet(one, other).places[0], Cfa(-8)) << "but what counts from the CFA is";
}

TEST(FrameMachine, ComparesWhatLeadsToTheCaller) {
  // lea 16(%rip), %rdx
  EXPECT_TRUE(IsSame(FrameAfter({}), FrameAfter({0x48, 0x8D, 0x15, 0x10, 0, 0, 0})));
  EXPECT_FALSE(IsSame(FrameAfter({}), FrameAfter({0x55})));
}

}  // namespace
}  // namespace strobe::internal
