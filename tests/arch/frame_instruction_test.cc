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

// "register = base + offset", as numbers; nothing if it is something else.
std::string MoveOf(const std::vector<std::uint8_t>& code) {
  const FrameInstruction found = DecodeFrame(code);
  if (found.kind != FrameKind::kMove) return "";
  return std::to_string(found.register_number) + " = " + std::to_string(found.base_number) + " + " +
         std::to_string(found.offset);
}

TEST(FrameInstruction, MovesAddresses) {
  EXPECT_EQ(MoveOf({0x48, 0x83, 0xEC, 0x28}), "4 = 4 + -40") << "sub $40, %rsp";
  EXPECT_EQ(MoveOf({0x48, 0x81, 0xC4, 0x00, 0x01, 0x00, 0x00}), "4 = 4 + 256");
  EXPECT_EQ(MoveOf({0x48, 0x83, 0xC4, 0x80}), "4 = 4 + -128");
  EXPECT_EQ(MoveOf({0x48, 0x8D, 0x64, 0x24, 0xF8}), "4 = 4 + -8") << "lea -8(%rsp), %rsp";
  EXPECT_EQ(MoveOf({0x48, 0x8D, 0x65, 0xD8}), "4 = 5 + -40") << "lea -40(%rbp), %rsp";
  EXPECT_EQ(MoveOf({0x48, 0x89, 0xEC}), "4 = 5 + 0") << "mov %rbp, %rsp";
  EXPECT_EQ(MoveOf({0x48, 0x89, 0xE5}), "5 = 4 + 0") << "mov %rsp, %rbp";
  EXPECT_EQ(MoveOf({0x48, 0x8B, 0xEC}), "5 = 4 + 0") << "in the other encoding";
  EXPECT_EQ(MoveOf({0x48, 0x8D, 0x6C, 0x24, 0x20}), "5 = 4 + 32") << "lea 32(%rsp), %rbp";
  EXPECT_EQ(MoveOf({0x4C, 0x8D, 0x54, 0x24, 0x08}), "10 = 4 + 8") << "lea 8(%rsp), %r10";
  EXPECT_EQ(MoveOf({0x48, 0x89, 0xC4}), "4 = 0 + 0") << "mov %rax, %rsp";
  EXPECT_EQ(MoveOf({0x49, 0x8D, 0x62, 0xF8}), "4 = 10 + -8") << "lea -8(%r10), %rsp";
  for (const std::vector<std::uint8_t>& code :
       std::vector<std::vector<std::uint8_t>>{{0x48, 0x83, 0xE4, 0xF0},  // and $-16, %rsp
                                              {0x48, 0x29, 0xC4},        // sub %rax, %rsp
                                              {0x48, 0x94},              // xchg %rax, %rsp
                                              {0x48, 0x8D, 0x24, 0x04},  // lea (%rsp,%rax), %rsp
                                              {0x48, 0x0F, 0x44, 0xE0},  // cmove %rax, %rsp
                                              {0x83, 0xEC, 0x08}}) {     // sub $8, %esp
    const FrameInstruction found = DecodeFrame(code);
    EXPECT_EQ(found.kind, FrameKind::kOther);
    EXPECT_NE(found.written & SetOf(kEncodedRsp), 0) << static_cast<unsigned>(code[1]);
  }
}

TEST(FrameInstruction, KeepsRegisters) {
  const FrameInstruction store = DecodeFrame({0x48, 0x89, 0x6C, 0x24, 0xF8});
  EXPECT_EQ(store.kind, FrameKind::kStore) << "mov %rbp, -8(%rsp)";
  EXPECT_EQ(store.register_number, kEncodedRbp);
  EXPECT_EQ(store.base_number, kEncodedRsp);
  EXPECT_EQ(store.offset, -8);
  const FrameInstruction load = DecodeFrame({0x48, 0x8B, 0x5E, 0xF8});
  EXPECT_EQ(load.kind, FrameKind::kLoad) << "mov -8(%rsi), %rbx";
  EXPECT_EQ(load.register_number, kEncodedRbx);
  EXPECT_EQ(load.base_number, 6u);
  EXPECT_EQ(load.offset, -8);
  EXPECT_EQ(DecodeFrame({0x89, 0x6C, 0x24, 0xF8}).kind, FrameKind::kOther) << "half of it";
}

TEST(FrameInstruction, FindsJumpsByTables) {
  EXPECT_EQ(DecodeFrame({0x48, 0x8D, 0x05, 0x10, 0, 0, 0}).kind, FrameKind::kAddress);
  EXPECT_TRUE(DecodeFrame({0x48, 0x63, 0x04, 0x8A}).loads_entry) << "movslq (%rdx,%rcx,4), %rax";
  EXPECT_EQ(DecodeFrame({0x48, 0x63, 0x04, 0x8A}).base_number, 2u);
  EXPECT_TRUE(DecodeFrame({0x0F, 0xB7, 0x4C, 0x48, 0x10}).loads_entry)
      << "movzwl 16(%rax,%rcx,2), %ecx";
  EXPECT_FALSE(DecodeFrame({0x0F, 0xB7, 0x48, 0x10}).loads_entry) << "movzwl 16(%rax), %ecx";
  EXPECT_TRUE(DecodeFrame({0x48, 0x01, 0xD0}).adds_base) << "add %rdx, %rax";
  EXPECT_EQ(DecodeFrame({0x48, 0x01, 0xD0}).register_number, 0u);
  EXPECT_EQ(DecodeFrame({0x48, 0x01, 0xD0}).base_number, 2u);
  EXPECT_EQ(DecodeFrame({0x3E, 0xFF, 0xE0}).register_number, 0u) << "notrack jmp *%rax";
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
