#include "strobe/arch/aarch64.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(Aarch64Registers, InstructionsAreAlignedWords) {
  EXPECT_FALSE(Aarch64Registers::IsCodeAddress(0));
  EXPECT_FALSE(Aarch64Registers::IsCodeAddress(4092));
  EXPECT_TRUE(Aarch64Registers::IsCodeAddress(4096));
  for (const Address low : {1, 2, 3}) EXPECT_FALSE(Aarch64Registers::IsCodeAddress(4096 + low));
}

TEST(Aarch64Registers, ASignatureIsNoPartOfAReturnAddress) {
  EXPECT_EQ(Aarch64Registers::PlainReturnAddress(0xABCD'1234'5678'9ABC), 0x1234'5678'9ABCu);
}

TEST(Aarch64Registers, ACallLeavesTheReturnAddressInTheLinkRegister) {
  Aarch64Registers registers;
  registers.set_link_register(5);
  EXPECT_EQ(registers.lr, 5u);
  EXPECT_EQ(registers.link_register(), 5u);
  EXPECT_EQ(Aarch64Registers::ReturnAddressWords(0), 0u);
  EXPECT_EQ(Aarch64Registers::ReturnAddressWords(3), 3u);
}

TEST(Aarch64Registers, KeepNoGeneralOnes) {
  const Aarch64GeneralRegisters general(nullptr);
  Aarch64Registers::set_general_registers(&general);
  EXPECT_FALSE(Aarch64Registers::has_general_registers());
}

}  // namespace
}  // namespace strobe
