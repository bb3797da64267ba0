#include "../../src/unwind/decoded/decoded_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

// The rules of `code` alone, by which each byte is unwound: "sp+N", "fp+N", and " fp@N" where the
// caller's frame pointer lies; "register R+N", by DWARF's number; "expression", "lost" and
// "unknown".
class Decoded {
 public:
  explicit Decoded(const std::vector<std::uint8_t>& code, bool begins_function = true) {
    compiled_.specials.emplace_back();
    internal::AddDecodedCode({.begin = 0,
                              .end = static_cast<std::uint32_t>(code.size()),
                              .text = code,
                              .begins_function = begins_function},
                             compiled_);
  }

  [[nodiscard]] std::string At(std::uint32_t offset) const {
    UnwindRule rule;
    for (const UnwindRow& row : compiled_.rows) {
      if (row.offset <= offset) rule = row.rule;
    }
    if (rule.is_frame()) {
      const std::string cfa =
          (rule.is_from_fp() ? "fp+" : "sp+") + std::to_string(rule.cfa_bytes());
      return rule.fp_words() == 0 ? cfa : cfa + " fp@" + std::to_string(rule.fp_words() * 8);
    }
    if (rule == UnwindRule::Stop()) return "end";
    const SpecialRule& special = compiled_.specials[rule.special_number()];
    switch (special.cfa) {
      case SpecialRule::Cfa::kLost: return "lost";
      case SpecialRule::Cfa::kExpression: return "expression";
      case SpecialRule::Cfa::kOffset:
        return "register " + std::to_string(special.cfa_other) + "+" +
               std::to_string(special.cfa_offset);
      default: return "unknown";
    }
  }

 private:
  CompiledCfi compiled_;
};

void AppendCode(std::vector<std::uint8_t>& code, std::initializer_list<std::uint8_t> more) {
  code.insert(code.end(), more);
}
// Up to where a function may begin.
void FillUp(std::vector<std::uint8_t>& code) {
  while (code.size() % 16 != 0) code.push_back(0xCC);
}

TEST(DecodedCode, FollowsALeafThatPushes) {
  // push %rbx; push %r12; sub $40, %rsp; 1: dec %rdi; jnz 1b; add $40, %rsp; pop %r12;
  // pop %rbx; ret
  const Decoded decoded({0x53, 0x41, 0x54, 0x48, 0x83, 0xEC, 0x28, 0x48, 0xFF, 0xCF,
                         0x75, 0xFB, 0x48, 0x83, 0xC4, 0x28, 0x41, 0x5C, 0x5B, 0xC3});
  EXPECT_EQ(decoded.At(0), "sp+8");
  EXPECT_EQ(decoded.At(1), "sp+16");
  EXPECT_EQ(decoded.At(3), "sp+24");
  EXPECT_EQ(decoded.At(7), "sp+64");
  EXPECT_EQ(decoded.At(12), "sp+64");
  EXPECT_EQ(decoded.At(16), "sp+24");
  EXPECT_EQ(decoded.At(18), "sp+16");
  EXPECT_EQ(decoded.At(19), "sp+8");
}

TEST(DecodedCode, FollowsAFramePointer) {
  // push %rbp; mov %rsp, %rbp; and $-64, %rsp; nop; leave; ret
  const Decoded decoded({0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xE4, 0xC0, 0x90, 0xC9, 0xC3});
  EXPECT_EQ(decoded.At(0), "sp+8");
  EXPECT_EQ(decoded.At(1), "sp+16 fp@16");
  EXPECT_EQ(decoded.At(4), "sp+16 fp@16");
  EXPECT_EQ(decoded.At(8), "fp+16 fp@16");
  EXPECT_EQ(decoded.At(10), "sp+8");
}

// Without filling between them, and the second called by nothing here.
TEST(DecodedCode, FollowsFunctionsBehindOthers) {
  const Decoded decoded({0x48, 0xFF, 0xCF, 0x75, 0xFB, 0xC3,  // 1: dec %rdi; jnz 1b; ret
                         0x53, 0x5B, 0xC3});                  // push %rbx; pop %rbx; ret
  EXPECT_EQ(decoded.At(5), "sp+8");
  EXPECT_EQ(decoded.At(7), "sp+16");
  EXPECT_EQ(decoded.At(8), "sp+8");
}

TEST(DecodedCode, FollowsPathsThatPartAndMeet) {
  // push %rbx; test %edi, %edi; je 1f; pop %rbx; ret; 1: sub $16, %rsp; add $16, %rsp;
  // pop %rbx; ret
  const Decoded decoded({0x53, 0x85, 0xFF, 0x74, 0x02, 0x5B, 0xC3, 0x48, 0x83, 0xEC, 0x10, 0x48,
                         0x83, 0xC4, 0x10, 0x5B, 0xC3});
  EXPECT_EQ(decoded.At(6), "sp+8");
  EXPECT_EQ(decoded.At(7), "sp+16");
  EXPECT_EQ(decoded.At(11), "sp+32");
  EXPECT_EQ(decoded.At(16), "sp+8");
}

TEST(DecodedCode, FollowsTheCasesOfASwitch) {
  // push %rbx; jmp *%rax; nop; pop %rbx; ret; nop; pop %rbx; ret
  const Decoded decoded({0x53, 0xFF, 0xE0, 0x31, 0xC0, 0x5B, 0xC3, 0x31, 0xC9, 0x5B, 0xC3});
  EXPECT_EQ(decoded.At(3), "sp+16");
  EXPECT_EQ(decoded.At(6), "sp+8");
  EXPECT_EQ(decoded.At(7), "sp+16");
}

// As libjpeg-turbo has it: push %rbp; mov %rsp, %rax; sub $4, %rsp; and $-16, %rsp;
// mov %rax, (%rsp); mov %rsp, %rbp; nop; mov %rbp, %rsp; pop %rsp; pop %rbp; ret.
TEST(DecodedCode, FollowsAnAlignedFrame) {
  const Decoded decoded({0x55, 0x48, 0x89, 0xE0, 0x48, 0x83, 0xEC, 0x04, 0x48,
                         0x83, 0xE4, 0xF0, 0x48, 0x89, 0x04, 0x24, 0x48, 0x89,
                         0xE5, 0x90, 0x48, 0x89, 0xEC, 0x5C, 0x5D, 0xC3});
  EXPECT_EQ(decoded.At(4), "sp+16 fp@16");
  EXPECT_EQ(decoded.At(12), "register 0+16") << "aligned, and rax has what it was";
  EXPECT_EQ(decoded.At(16), "expression");
  EXPECT_EQ(decoded.At(19), "expression");
  EXPECT_EQ(decoded.At(23), "expression");
  EXPECT_EQ(decoded.At(24), "sp+16 fp@16");
  EXPECT_EQ(decoded.At(25), "sp+8");
}

// As x264 has it: mov %rsp, %rcx; and $-16, %rsp; call 1f; mov %rcx, %rsp; ret; 1: its helper.
std::vector<std::uint8_t> CodeWithHelper(std::initializer_list<std::uint8_t> helper) {
  std::vector<std::uint8_t> code = {0x48, 0x89, 0xE1, 0x48, 0x83, 0xE4, 0xF0, 0xE8,
                                    0x04, 0,    0,    0,    0x48, 0x89, 0xCC, 0xC3};
  AppendCode(code, helper);
  return code;
}

TEST(DecodedCode, FollowsAnAlignedFrameByARegisterThatItsHelperLeavesAlone) {
  const Decoded decoded(CodeWithHelper({0x31, 0xC0, 0xC3}));  // xor %eax, %eax; ret
  EXPECT_EQ(decoded.At(7), "register 2+8") << "rcx";
  EXPECT_EQ(decoded.At(12), "register 2+8");
  EXPECT_EQ(decoded.At(15), "sp+8");
  const Decoded other(CodeWithHelper({0x31, 0xC9, 0xC3}));  // xor %ecx, %ecx; ret
  EXPECT_EQ(other.At(7), "lost") << "such a function has no way back";
}

// Vectors' registers have the same numbers as rsp and rbp: vpextrd $1, %xmm4, (%rdi).
TEST(DecodedCode, FollowsCodeWithVectors) {
  const Decoded decoded({0x53, 0xC4, 0xE3, 0x79, 0x16, 0x27, 0x01, 0x5B, 0xC3});
  EXPECT_EQ(decoded.At(7), "sp+16");
  EXPECT_EQ(decoded.At(8), "sp+8");
}

// lea 16(%rip), %rdx; movslq (%rdx,%rcx,4), %rax; add %rdx, %rax; jmp *%rax, and what follows.
std::vector<std::uint8_t> CodeWithSwitch(std::initializer_list<std::uint8_t> parts) {
  std::vector<std::uint8_t> code = {0x48, 0x8D, 0x15, 0x10, 0,    0,    0,    0x48,
                                    0x63, 0x04, 0x8A, 0x48, 0x01, 0xD0, 0xFF, 0xE0};
  AppendCode(code, parts);
  return code;
}

// Nothing else tells that it is a function than the parts that its table leads to.
TEST(DecodedCode, FollowsAFunctionThatEndsInASwitch) {
  const bool begins = false;
  std::vector<std::uint8_t> code = {0xC3};  // the function before
  FillUp(code);
  const std::vector<std::uint8_t> right = CodeWithSwitch({0x31, 0xC0, 0xC3, 0x31, 0xC9, 0xC3});
  code.insert(code.end(), right.begin(), right.end());
  const Decoded decoded(code, begins);
  EXPECT_EQ(decoded.At(16), "sp+8");
  EXPECT_EQ(decoded.At(30), "sp+8");
  EXPECT_EQ(decoded.At(32), "sp+8");
  EXPECT_EQ(decoded.At(35), "sp+8");
  // A part that pops what the code before it would have pushed.
  std::vector<std::uint8_t> wrong = {0xC3};
  FillUp(wrong);
  const std::vector<std::uint8_t> part = CodeWithSwitch({0x31, 0xC0, 0x5B, 0xC3});
  wrong.insert(wrong.end(), part.begin(), part.end());
  EXPECT_EQ(Decoded(wrong, begins).At(16), "lost");
}

// A call that never returns: what stands behind it is another function.
TEST(DecodedCode, EndsAFunctionAtACallThatNeverReturns) {
  std::vector<std::uint8_t> code = {0x53, 0x85, 0xFF, 0x74, 0x02, 0x5B, 0xC3,  // as above
                                    0xE8, 0x00, 0x10, 0x00, 0x00};             // call elsewhere
  FillUp(code);
  AppendCode(code, {0x31, 0xC0, 0xC3});  // xor %eax, %eax; ret
  const Decoded decoded(code);
  EXPECT_EQ(decoded.At(7), "sp+16");
  EXPECT_EQ(decoded.At(16), "sp+8");
  EXPECT_EQ(decoded.At(18), "sp+8");
}

// Nor does a call end it where another function may begin, if what is called returns.
TEST(DecodedCode, GoesOnBehindACallOfALeaf) {
  std::vector<std::uint8_t> code = {0xC3};  // the function before
  FillUp(code);
  // sub $8, %rsp; nop; call 1f, to where a function may begin; add $8, %rsp; ret; 1: ret
  AppendCode(code, {0x48, 0x83, 0xEC, 0x08, 0x66, 0x0F, 0x1F, 0x84, 0,    0,    0,
                    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
                    0x90, 0x90, 0x90, 0x90, 0x90, 0xE8, 0x05, 0,    0,    0});
  AppendCode(code, {0x48, 0x83, 0xC4, 0x08, 0xC3, 0xC3});
  const Decoded decoded(code, /*begins_function=*/false);
  EXPECT_EQ(decoded.At(43), "sp+16");
  EXPECT_EQ(decoded.At(48), "sp+16");
  EXPECT_EQ(decoded.At(52), "sp+8");
}

TEST(DecodedCode, DoesNotBelieveWhatEndsWrong) {
  // A function that leaves with a word too much, and one that loses its caller's frame pointer.
  EXPECT_EQ(Decoded({0x53, 0x90, 0xC3}).At(1), "lost");
  EXPECT_EQ(Decoded({0x31, 0xED, 0x90, 0xC3}).At(2), "lost");
  // push %rbx; sub %rax, %rsp; nop; ud2: its stack pointer is anywhere
  EXPECT_EQ(Decoded({0x53, 0x48, 0x29, 0xC4, 0x90, 0x0F, 0x0B}).At(4), "lost");
  // Bytes that are no instruction.
  EXPECT_EQ(Decoded({0x06, 0x06, 0xC3}).At(0), "lost");
}

// As the dynamic loader has it: mov %rsp, %rdi; call elsewhere; mov %rax, %r12; jmp *%r12.
TEST(DecodedCode, KnowsWhereProgramsBegin) {
  const Decoded decoded(
      {0x48, 0x89, 0xE7, 0xE8, 0, 0x10, 0, 0, 0x49, 0x89, 0xC4, 0x41, 0xFF, 0xE4});
  for (const std::uint32_t at : {0u, 3u, 7u, 8u, 11u}) EXPECT_EQ(decoded.At(at), "end") << at;
}

// A part of a function that only jumps lead to from where the walk has not come.
TEST(DecodedCode, TakesNoPartOfAFunctionForOne) {
  // From no function's beginning on: jmp 1f; 2: xor %eax, %eax; ret; 1: jmp 2b
  const Decoded decoded({0xEB, 0x03, 0x31, 0xC0, 0xC3, 0xEB, 0xFB}, /*begins_function=*/false);
  EXPECT_EQ(decoded.At(2), "lost");
}

TEST(DecodedCode, LeavesFillingAlone) {
  CompiledCfi compiled;
  compiled.specials.emplace_back();
  const std::vector<std::uint8_t> filling(32, 0xCC);
  internal::AddDecodedCode({.begin = 0, .end = 32, .text = filling, .begins_function = true},
                           compiled);
  EXPECT_TRUE(compiled.rows.empty());
}

// Whatever the bytes are, there is an end, and the rows are sorted.
TEST(DecodedCode, EndsOnAnyBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint8_t> code(4096);
    // Half of them jumps, branches, calls and returns, near each other.
    for (std::uint8_t& byte : code) {
      constexpr std::uint8_t kFlow[] = {0x74, 0xEB, 0xE8, 0xC3, 0x53, 0x5B, 0x55, 0x5D, 0x00, 0xFF};
      byte = random() % 2 == 0 ? kFlow[random() % std::size(kFlow)]
                               : static_cast<std::uint8_t>(random());
    }
    CompiledCfi compiled;
    compiled.specials.emplace_back();
    internal::AddDecodedCode({.begin = 0x100,
                              .end = 0x900,
                              .before = 0x100,
                              .text = code,
                              .begins_function = round % 2 == 0},
                             compiled);
    for (std::size_t i = 1; i < compiled.rows.size(); ++i)
      ASSERT_LT(compiled.rows[i - 1].offset, compiled.rows[i].offset) << round;
  }
}

}  // namespace
}  // namespace strobe::testing
