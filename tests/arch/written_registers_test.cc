#include "../../src/arch/written_registers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../../src/arch/instruction_bytes.h"

namespace strobe::internal {
namespace {

// The names of the registers that an instruction writes, in the order of their encodings.
std::string Written(const std::vector<std::uint8_t>& code) {
  EXPECT_EQ(InstructionBytes(code), code.size());
  constexpr const char* kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  const RegisterSet written = WrittenRegisters(SplitInstruction(code));
  std::string names;
  for (unsigned number = 0; number < kX86_64GeneralRegisters; ++number) {
    if ((written & SetOf(number)) != 0)
      names += (names.empty() ? "" : " ") + std::string(kNames[number]);
  }
  return names;
}

TEST(WrittenRegisters, AreThoseThatOperandsName) {
  EXPECT_EQ(Written({0x48, 0x01, 0xC3}), "rbx") << "add %rax, %rbx";
  EXPECT_EQ(Written({0x48, 0x03, 0xC3}), "rax") << "add %rbx, %rax";
  EXPECT_EQ(Written({0x48, 0x01, 0x03}), "") << "add %rax, (%rbx)";
  EXPECT_EQ(Written({0x48, 0x39, 0xC3}), "") << "cmp";
  EXPECT_EQ(Written({0x48, 0x83, 0xF8, 1}), "") << "cmp $1, %rax";
  EXPECT_EQ(Written({0x48, 0x83, 0xC0, 1}), "rax") << "add $1, %rax";
  EXPECT_EQ(Written({0x48, 0x85, 0xC3}), "") << "test";
  EXPECT_EQ(Written({0x48, 0x87, 0xD9}), "rcx rbx") << "xchg";
  EXPECT_EQ(Written({0x41, 0x92}), "rax r10") << "xchg %rax, %r10";
  EXPECT_EQ(Written({0x90}), "") << "nop";
  EXPECT_EQ(Written({0x41, 0xBC, 1, 0, 0, 0}), "r12") << "mov $1, %r12d";
  EXPECT_EQ(Written({0x41, 0x5F}), "r15") << "pop %r15";
  EXPECT_EQ(Written({0x0F, 0x44, 0xC8}), "rcx") << "cmove";
  EXPECT_EQ(Written({0x0F, 0xC9}), "rcx") << "bswap";
  EXPECT_EQ(Written({0x0F, 0xAB, 0xC1}), "rcx") << "bts";
  EXPECT_EQ(Written({0x0F, 0xBA, 0xE1, 1}), "") << "bt";
  EXPECT_EQ(Written({0x0F, 0xC1, 0xC1}), "rax rcx") << "xadd";
  EXPECT_EQ(Written({0xF7, 0xD9}), "rcx") << "neg";
  EXPECT_EQ(Written({0xFF, 0xD1}), "") << "call *%rcx";
}

TEST(WrittenRegisters, AreThoseThatNoOperandNames) {
  EXPECT_EQ(Written({0x04, 1}), "rax") << "add $1, %al";
  EXPECT_EQ(Written({0x3C, 1}), "") << "cmp $1, %al";
  EXPECT_EQ(Written({0x48, 0xF7, 0xE1}), "rax rdx") << "mul %rcx";
  EXPECT_EQ(Written({0xF6, 0xF1}), "rax") << "div %cl";
  EXPECT_EQ(Written({0xF7, 0xC1, 1, 0, 0, 0}), "") << "test $1, %ecx";
  EXPECT_EQ(Written({0x48, 0x98}), "rax") << "cltq";
  EXPECT_EQ(Written({0x48, 0x99}), "rdx") << "cqto";
  EXPECT_EQ(Written({0xF3, 0x48, 0xA5}), "rcx rsi rdi") << "rep movsq";
  EXPECT_EQ(Written({0xAA}), "rdi") << "stosb";
  EXPECT_EQ(Written({0xAC}), "rax rsi") << "lodsb";
  EXPECT_EQ(Written({0xE2, 0xFE}), "rcx") << "loop";
  EXPECT_EQ(Written({0x0F, 0x05}), "rax rcx r11") << "syscall";
  EXPECT_EQ(Written({0x0F, 0xA2}), "rax rcx rdx rbx") << "cpuid";
  EXPECT_EQ(Written({0x0F, 0x31}), "rax rdx") << "rdtsc";
  EXPECT_EQ(Written({0x0F, 0xB1, 0x0B}), "rax") << "cmpxchg %ecx, (%rbx)";
  EXPECT_EQ(Written({0x48, 0x0F, 0xC7, 0x0F}), "rax rdx") << "cmpxchg16b (%rdi)";
  EXPECT_EQ(Written({0x48, 0x0F, 0xC7, 0xF3}), "rbx") << "rdrand %rbx";
  EXPECT_EQ(Written({0xDF, 0xE0}), "rax") << "fnstsw %ax";
  EXPECT_EQ(Written({0x66, 0x0F, 0x3A, 0x63, 0xC1, 0}), "rcx") << "pcmpistri";
  EXPECT_EQ(WrittenRegisters(SplitInstruction(std::vector<std::uint8_t>{0xCD, 0x80})),
            kAllRegisters)
      << "int $0x80";
}

// The second four registers of 8 bits are the second bytes of the first four, but for a prefix.
TEST(WrittenRegisters, AreTheirParts) {
  EXPECT_EQ(Written({0xB4, 1}), "rax") << "mov $1, %ah";
  EXPECT_EQ(Written({0xB7, 1}), "rbx") << "mov $1, %bh";
  EXPECT_EQ(Written({0x88, 0xC7}), "rbx") << "mov %al, %bh";
  EXPECT_EQ(Written({0x40, 0x88, 0xC7}), "rdi") << "mov %al, %dil";
  EXPECT_EQ(Written({0x0F, 0x94, 0xC4}), "rax") << "sete %ah";
  EXPECT_EQ(Written({0x0F, 0xB6, 0xEC}), "rbp") << "movzx %ah, %ebp";
}

// Vectors are not general registers of the same number.
TEST(WrittenRegisters, AreFewOfInstructionsWithVectors) {
  EXPECT_EQ(Written({0xC4, 0xE3, 0x79, 0x16, 0x2F, 1}), "") << "vpextrd $1, %xmm5, (%rdi)";
  EXPECT_EQ(Written({0xC4, 0xE3, 0x79, 0x16, 0xEF, 1}), "rdi") << "vpextrd $1, %xmm5, %edi";
  EXPECT_EQ(Written({0xC5, 0xF9, 0x7E, 0xE3}), "rbx") << "vmovd %xmm4, %ebx";
  EXPECT_EQ(Written({0xC5, 0xFA, 0x7E, 0xE3}), "") << "vmovq %xmm3, %xmm4";
  EXPECT_EQ(Written({0xC5, 0xFD, 0xD7, 0xEC}), "rbp") << "vpmovmskb %ymm4, %ebp";
  EXPECT_EQ(Written({0xC5, 0xFB, 0x93, 0xC4}), "rax") << "kmovd %k4, %eax";
  EXPECT_EQ(Written({0xC5, 0xF8, 0x44, 0xEC}), "") << "knotw %k4, %k5";
  EXPECT_EQ(Written({0xC5, 0xE8, 0x59, 0xE5}), "") << "vmulps";
  EXPECT_EQ(Written({0xC4, 0xE2, 0xF3, 0xF6, 0xDD}), "rcx rbx") << "mulx %rbp, %rcx, %rbx";
  EXPECT_EQ(Written({0xC4, 0xE2, 0xF0, 0xF2, 0xDD}), "rbx") << "andn %rbp, %rcx, %rbx";
  EXPECT_EQ(Written({0xC4, 0xE2, 0xF0, 0xF3, 0xDD}), "rcx") << "blsi %rbp, %rcx";
  EXPECT_EQ(Written({0xC4, 0xE3, 0xFB, 0xF0, 0xDD, 7}), "rbx") << "rorx $7, %rbp, %rbx";
  EXPECT_EQ(Written({0x66, 0x48, 0x0F, 0x38, 0xF6, 0xDD}), "rbx") << "adcx %rbp, %rbx";
  EXPECT_EQ(Written({0x62, 0xF1, 0x7F, 0x08, 0x78, 0xC5}), "rax") << "vcvttsd2usi %xmm5, %eax";
  EXPECT_EQ(Written({0x8F, 0xE9, 0x70, 0x01, 0xC8}), "rcx") << "AMD's blcfill %eax, %ecx";
}

}  // namespace
}  // namespace strobe::internal
