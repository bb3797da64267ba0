#include "../../src/arch/instruction_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace strobe::internal {
namespace {

InstructionParts::Memory MemoryOf(const std::vector<std::uint8_t>& code) {
  return SplitInstruction(code).memory();
}

TEST(InstructionParts, FindsOpcodesInTheirMaps) {
  const std::vector<std::uint8_t> plain = {0x66, 0x4D, 0x89, 0xC8};  // with two prefixes
  EXPECT_EQ(SplitInstruction(plain).map, 1u);
  EXPECT_EQ(SplitInstruction(plain).opcode(), 0x89);
  EXPECT_TRUE(SplitInstruction(plain).has_16_bits);
  EXPECT_EQ(SplitInstruction(plain).reg(), 9u);
  EXPECT_EQ(SplitInstruction(plain).operand(), 8u);
  const std::vector<std::uint8_t> two = {0x0F, 0xAF, 0xC1};
  EXPECT_EQ(SplitInstruction(two).map, 2u);
  const std::vector<std::uint8_t> three = {0xF2, 0x0F, 0x38, 0xF1, 0xC1};
  EXPECT_EQ(SplitInstruction(three).map, 3u);
  EXPECT_TRUE(SplitInstruction(three).repeats_not);
}

TEST(InstructionParts, ReadsThePrefixesOfVectors) {
  const std::vector<std::uint8_t> mulx = {0xC4, 0x42, 0xD3, 0xF6, 0xD9};  // mulx %r9, %rbp, %r11
  EXPECT_TRUE(SplitInstruction(mulx).is_vector);
  EXPECT_EQ(SplitInstruction(mulx).map, 3u);
  EXPECT_EQ(SplitInstruction(mulx).opcode(), 0xF6);
  EXPECT_EQ(SplitInstruction(mulx).vector_register, 5u);
  EXPECT_EQ(SplitInstruction(mulx).reg(), 11u);
  EXPECT_EQ(SplitInstruction(mulx).operand(), 9u);
  const std::vector<std::uint8_t> vmovq = {0xC5, 0xFA, 0x7E, 0xC0};
  EXPECT_EQ(SplitInstruction(vmovq).map, 2u);
  EXPECT_TRUE(SplitInstruction(vmovq).repeats) << "its prefix stands for F3";
  const std::vector<std::uint8_t> bextr = {0x8F, 0xEA, 0x78, 0x10, 0xC0, 1, 2, 3, 4};
  EXPECT_EQ(SplitInstruction(bextr).map, 11u) << "AMD's";
  const std::vector<std::uint8_t> pop = {0x8F, 0xC0};
  EXPECT_EQ(SplitInstruction(pop).map, 1u) << "which begins with a pop";
}

TEST(InstructionParts, FindsOperandsInMemory) {
  EXPECT_EQ(MemoryOf({0x8B, 0x45, 0xF8}).base, 5u) << "-8(%rbp)";
  EXPECT_EQ(MemoryOf({0x8B, 0x45, 0xF8}).displacement, -8);
  EXPECT_EQ(MemoryOf({0x8B, 0x84, 0x24, 0x00, 1, 0, 0}).base, 4u) << "256(%rsp)";
  EXPECT_EQ(MemoryOf({0x8B, 0x84, 0x24, 0x00, 1, 0, 0}).displacement, 256);
  EXPECT_FALSE(MemoryOf({0x8B, 0x84, 0x24, 0x00, 1, 0, 0}).has_index);
  EXPECT_TRUE(MemoryOf({0x8B, 0x04, 0x8A}).has_index) << "(%rdx,%rcx,4)";
  EXPECT_TRUE(MemoryOf({0x42, 0x8B, 0x04, 0x22}).has_index) << "(%rdx,%r12)";
  EXPECT_TRUE(MemoryOf({0x8B, 0x05, 4, 0, 0, 0}).is_relative) << "4(%rip)";
  EXPECT_EQ(MemoryOf({0x8B, 0x05, 4, 0, 0, 0}).base, InstructionParts::kNoRegister);
  EXPECT_EQ(MemoryOf({0x8B, 0x04, 0x25, 4, 0, 0, 0}).base, InstructionParts::kNoRegister) << "4";
  EXPECT_EQ(MemoryOf({0x8B, 0xC1}).base, InstructionParts::kNoRegister) << "%ecx";
}

}  // namespace
}  // namespace strobe::internal
