#include "../../src/arch/instruction_bytes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strobe::internal {
namespace {

using Code = std::vector<std::uint8_t>;

TEST(InstructionBytes, OfEachForm) {
  const std::vector<Code> instructions = {
      {0x55},                                                  // push rbp
      {0xC3},                                                  // ret
      {0xC2, 0x08, 0x00},                                      // ret 8
      {0xC8, 0x10, 0x00, 0x00},                                // enter 16, 0
      {0x0F, 0x05},                                            // syscall
      {0xF3, 0x0F, 0x1E, 0xFA},                                // endbr64
      {0x48, 0x89, 0xE5},                                      // mov rbp, rsp
      {0x48, 0x81, 0xEC, 0x00, 0x01, 0x00, 0x00},              // sub rsp, 256
      {0x48, 0x8B, 0x05, 0x00, 0x00, 0x00, 0x00},              // mov rax, [rip]
      {0x48, 0x8D, 0x64, 0x24, 0x08},                          // lea rsp, [rsp + 8]
      {0x48, 0x8B, 0x84, 0xC8, 0x00, 0x01, 0x00, 0x00},        // mov rax, [rax + rcx * 8 + 256]
      {0x48, 0x8B, 0x04, 0x25, 0x00, 0x00, 0x00, 0x00},        // mov rax, [0]
      {0x64, 0x48, 0x8B, 0x04, 0x25, 0x00, 0x00, 0x00, 0x00},  // mov rax, fs:[0]
      {0xB8, 0x01, 0x00, 0x00, 0x00},                          // mov eax, 1
      {0x66, 0xB8, 0x01, 0x00},                                // mov ax, 1
      {0x48, 0xB8, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08},  // mov rax, a long number
      {0xA1, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08},        // mov eax, [a long address]
      {0x67, 0xA1, 0x01, 0x02, 0x03, 0x04},                          // mov eax, [a short address]
      {0xF6, 0x45, 0x00, 0x01},                                      // test byte [rbp], 1
      {0xF6, 0x5D, 0x00},                                            // neg byte [rbp]
      {0xF7, 0x45, 0x00, 0x01, 0x00, 0x00, 0x00},                    // test dword [rbp], 1
      {0xE8, 0x00, 0x00, 0x00, 0x00},                                // call
      {0x66, 0xE8, 0x00, 0x00, 0x00, 0x00},        // call, of which the prefix changes nothing
      {0xEB, 0x00},                                // jmp, near by
      {0x0F, 0x84, 0x00, 0x00, 0x00, 0x00},        // je
      {0x66, 0x0F, 0x84, 0x00, 0x00, 0x00, 0x00},  // je, of which the prefix changes nothing
      {0xF2, 0x0F, 0x58, 0xC2},                    // addsd xmm0, xmm2
      {0x0F, 0x38, 0x00, 0xC1},                    // pshufb mm0, mm1
      {0x66, 0x0F, 0x3A, 0x0F, 0xC1, 0x08},        // palignr xmm0, xmm1, 8
      {0xC5, 0xF8, 0x77},                          // vzeroupper
      {0xC4, 0xE2, 0x71, 0x98, 0xC2},              // vfmadd132ps xmm0, xmm1, xmm2
      {0x8F, 0xE8, 0x78, 0xA2, 0xC1, 0x10},        // vpcmov xmm0, xmm0, xmm1, xmm1: AMD's
      {0x8F, 0xE9, 0x78, 0xC1, 0xC1},              // vphaddbw xmm0, xmm1
      {0x8F, 0xEA, 0x78, 0x10, 0xC1, 1, 2, 3, 4},  // bextr eax, ecx, 0x04030201
      {0x8F, 0x00},                                // pop [rax]
      {0x62, 0xF1, 0x7C, 0x48, 0x28, 0xC1},        // vmovaps zmm0, zmm1
  };
  for (const Code& instruction : instructions) {
    Code code = instruction;
    EXPECT_EQ(InstructionBytes(code), instruction.size()) << ::testing::PrintToString(instruction);
    code.resize(40, 0xC3);
    EXPECT_EQ(InstructionBytes(code), instruction.size())
        << ::testing::PrintToString(instruction) << " with more behind it";
    for (code = instruction; code.size() > 1;) {
      code.pop_back();
      EXPECT_EQ(InstructionBytes(code), 0u)
          << ::testing::PrintToString(instruction) << " without its end";
    }
  }
}

TEST(InstructionBytes, OfWhatIsNone) {
  EXPECT_EQ(InstructionBytes({}), 0u);
  const Code of_32_bits = {0x06, 0xC3};  // push es
  EXPECT_EQ(InstructionBytes(of_32_bits), 0u);
  EXPECT_EQ(InstructionBytes(Code(40, 0x66)), 0u) << "prefixes only";
  Code long_one(14, 0x66);
  long_one.push_back(0x90);
  EXPECT_EQ(InstructionBytes(long_one), 15u);
  long_one.insert(long_one.begin(), 0x66);
  EXPECT_EQ(InstructionBytes(long_one), 0u);
}

}  // namespace
}  // namespace strobe::internal
