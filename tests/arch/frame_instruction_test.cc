#include "../../src/arch/frame_instruction.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace strobe::internal {
namespace {

using FrameKind = FrameInstruction::Kind;

constexpr unsigned kEncodedRbx = X86_64Encoding::kRbx;
constexpr unsigned kEncodedRsp = X86_64Encoding::kRsp;
constexpr unsigned kEncodedRbp = X86_64Encoding::kRbp;

FrameInstruction DecodeFrame(const std::vector<std::uint8_t>& code) {
  const FrameInstruction found = DecodeFrameInstruction(code);
  EXPECT_EQ(found.bytes, code.size());
  return found;
}

TEST(FrameInstruction, PushesAndPops) {
  EXPECT_EQ(DecodeFrame({0x55}).kind, FrameKind::kPush);
  EXPECT_EQ(DecodeFrame({0x55}).register_number, kEncodedRbp);
  EXPECT_EQ(DecodeFrame({0x41, 0x55}).register_number, 13u);
  EXPECT_EQ(DecodeFrame({0x6A, 0x01}).kind, FrameKind::kPush);
  EXPECT_EQ(DecodeFrame({0x6A, 0x01}).register_number, FrameInstruction::kNoRegister);
  EXPECT_EQ(DecodeFrame({0xFF, 0x75, 0x08}).kind, FrameKind::kPush) << "push 8(%rbp)";
  EXPECT_EQ(DecodeFrame({0x5B}).kind, FrameKind::kPop);
  EXPECT_EQ(DecodeFrame({0x5B}).register_number, kEncodedRbx);
  EXPECT_EQ(DecodeFrame({0x66, 0x55}).kind, FrameKind::kInvalid) << "16 bits of it";
  EXPECT_EQ(DecodeFrame({0xC9}).kind, FrameKind::kLeave);
}

TEST(FrameInstruction, MovesTheStackPointer) {
  const FrameInstruction sub = DecodeFrame({0x48, 0x83, 0xEC, 0x28});
  EXPECT_EQ(sub.kind, FrameKind::kMoveSp);
  EXPECT_EQ(sub.offset, -0x28);
  EXPECT_EQ(DecodeFrame({0x48, 0x81, 0xC4, 0x00, 0x01, 0x00, 0x00}).offset, 0x100);
  EXPECT_EQ(DecodeFrame({0x48, 0x83, 0xC4, 0x80}).offset, -0x80);
  EXPECT_EQ(DecodeFrame({0x48, 0x8D, 0x64, 0x24, 0xF8}).kind, FrameKind::kMoveSp)
      << "lea -8(%rsp), %rsp";
  EXPECT_EQ(DecodeFrame({0x48, 0x8D, 0x65, 0xD8}).kind, FrameKind::kFpToSp)
      << "lea -40(%rbp), %rsp";
  EXPECT_EQ(DecodeFrame({0x48, 0x8D, 0x65, 0xD8}).offset, -40);
  EXPECT_EQ(DecodeFrame({0x48, 0x89, 0xEC}).kind, FrameKind::kFpToSp) << "mov %rbp, %rsp";
  for (const std::vector<std::uint8_t>& code :
       std::vector<std::vector<std::uint8_t>>{{0x48, 0x83, 0xE4, 0xF0},  // and $-16, %rsp
                                              {0x48, 0x29, 0xC4},        // sub %rax, %rsp
                                              {0x48, 0x94},              // xchg %rax, %rsp
                                              {0x48, 0x89, 0xC4},        // mov %rax, %rsp
                                              {0x48, 0x8D, 0x60, 0x08},  // lea 8(%rax), %rsp
                                              {0x48, 0x0F, 0x44, 0xE0},  // cmove %rax, %rsp
                                              {0x83, 0xEC, 0x08}}) {     // sub $8, %esp
    const FrameInstruction found = DecodeFrame(code);
    EXPECT_EQ(found.kind, FrameKind::kOther);
    EXPECT_EQ(found.written, 1u << kEncodedRsp) << static_cast<unsigned>(code[1]);
  }
}

TEST(FrameInstruction, KeepsRegisters) {
  EXPECT_EQ(DecodeFrame({0x48, 0x89, 0xE5}).kind, FrameKind::kSpToRegister) << "mov %rsp, %rbp";
  EXPECT_EQ(DecodeFrame({0x48, 0x8B, 0xEC}).register_number, kEncodedRbp)
      << "in the other encoding";
  const FrameInstruction lea = DecodeFrame({0x48, 0x8D, 0x6C, 0x24, 0x20});
  EXPECT_EQ(lea.kind, FrameKind::kSpToRegister) << "lea 32(%rsp), %rbp";
  EXPECT_EQ(lea.offset, 32);
  const FrameInstruction store = DecodeFrame({0x48, 0x89, 0x6C, 0x24, 0xF8});
  EXPECT_EQ(store.kind, FrameKind::kStore) << "mov %rbp, -8(%rsp)";
  EXPECT_EQ(store.register_number, kEncodedRbp);
  EXPECT_EQ(store.offset, -8);
  const FrameInstruction load = DecodeFrame({0x48, 0x8B, 0x5C, 0x24, 0x10});
  EXPECT_EQ(load.kind, FrameKind::kLoad) << "mov 16(%rsp), %rbx";
  EXPECT_EQ(load.register_number, kEncodedRbx);
}

TEST(FrameInstruction, SaysWhatIsWritten) {
  EXPECT_EQ(DecodeFrame({0x31, 0xED}).written, 1u << kEncodedRbp) << "xor %ebp, %ebp";
  EXPECT_EQ(DecodeFrame({0xBD, 1, 0, 0, 0}).written, 1u << kEncodedRbp) << "mov $1, %ebp";
  EXPECT_EQ(DecodeFrame({0xFF, 0xCD}).written, 1u << kEncodedRbp) << "dec %ebp";
  EXPECT_EQ(DecodeFrame({0x0F, 0xA2}).written, 1u << kEncodedRbx) << "cpuid";
  EXPECT_EQ(DecodeFrame({0x0F, 0xCB}).written, 1u << kEncodedRbx) << "bswap %ebx";
  EXPECT_EQ(DecodeFrame({0xC5, 0xF9, 0x7E, 0xC3}).written, 1u << kEncodedRbx)
      << "vmovd %xmm0, %ebx";
  EXPECT_NE(DecodeFrame({0xC4, 0xE2, 0xD3, 0xF6, 0xD9}).written & 1u << kEncodedRbp, 0)
      << "mulx to %rbp, %rbx";
  EXPECT_EQ(DecodeFrame({0x48, 0x39, 0xE5}).written, 0) << "cmp %rsp, %rbp";
  EXPECT_EQ(DecodeFrame({0x48, 0x85, 0xED}).written, 0) << "test %rbp, %rbp";
  EXPECT_EQ(DecodeFrame({0x89, 0x45, 0xFC}).written, 0) << "mov %eax, -4(%rbp)";
  EXPECT_EQ(DecodeFrame({0x83, 0xFD, 0x05}).written, 0) << "cmp $5, %ebp";
}

TEST(FrameInstruction, SaysWhereItGoesOn) {
  const FrameInstruction call = DecodeFrame({0xE8, 0x10, 0, 0, 0});
  EXPECT_EQ(call.kind, FrameKind::kCall);
  EXPECT_TRUE(call.has_target);
  EXPECT_EQ(call.offset, 0x10);
  EXPECT_FALSE(DecodeFrame({0xFF, 0xD0}).has_target) << "call *%rax";
  EXPECT_EQ(DecodeFrame({0xEB, 0xFE}).kind, FrameKind::kJump);
  EXPECT_EQ(DecodeFrame({0xEB, 0xFE}).offset, -2);
  EXPECT_EQ(DecodeFrame({0x75, 0xFE}).kind, FrameKind::kBranch);
  EXPECT_EQ(DecodeFrame({0x0F, 0x85, 0, 1, 0, 0}).offset, 0x100);
  EXPECT_EQ(DecodeFrame({0xFF, 0x25, 0, 0, 0, 0}).kind, FrameKind::kJumpThrough);
  EXPECT_EQ(DecodeFrame({0x3E, 0xFF, 0xE0}).kind, FrameKind::kJumpThrough) << "notrack jmp *%rax";
  EXPECT_EQ(DecodeFrame({0xC3}).kind, FrameKind::kReturn);
  EXPECT_EQ(DecodeFrame({0xF3, 0xC3}).kind, FrameKind::kReturn);
  EXPECT_EQ(DecodeFrame({0x0F, 0x0B}).kind, FrameKind::kEnd);
  EXPECT_EQ(DecodeFrame({0xCC}).kind, FrameKind::kEnd);
  EXPECT_TRUE(DecodeFrame({0x66, 0x0F, 0x1F, 0x44, 0, 0}).is_nothing);
  EXPECT_TRUE(DecodeFrame({0x66, 0x90}).is_nothing);
  EXPECT_FALSE(DecodeFrame({0xF3, 0x0F, 0x1E, 0xFA}).is_nothing) << "endbr64 begins a function";
}

// Also with what follows missing.
TEST(FrameInstruction, ReadsNoFurtherThanTheCode) {
  const std::vector<std::uint8_t> code = {0x48, 0x81, 0xEC, 0x00, 0x01, 0x00, 0x00};
  for (std::size_t bytes = 0; bytes < code.size(); ++bytes) {
    const std::vector<std::uint8_t> part(code.begin(), code.begin() + static_cast<long>(bytes));
    EXPECT_EQ(DecodeFrameInstruction(part).kind, FrameKind::kInvalid) << bytes;
  }
}

}  // namespace
}  // namespace strobe::internal
