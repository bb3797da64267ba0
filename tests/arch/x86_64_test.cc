#include "strobe/arch/x86_64.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(X86_64GeneralRegisters, AreFoundWhereTheyAreKept) {
  Address words[kX86_64GeneralRegisters] = {};
  words[5] = 7;
  words[kX86_64Rbx] = 9;
  std::uint8_t places[kX86_64GeneralRegisters] = {};
  places[kX86_64Rbx] = 5;
  EXPECT_EQ(X86_64GeneralRegisters(words)[kX86_64Rbx], 9u);
  EXPECT_EQ(X86_64GeneralRegisters(words, places)[kX86_64Rbx], 7u);

  X86_64Registers registers;
  EXPECT_FALSE(registers.has_general_registers());
  const X86_64GeneralRegisters general(words, places);
  registers.set_general_registers(&general);
  ASSERT_TRUE(registers.has_general_registers());
  EXPECT_EQ(registers.general_register(X86_64Registers::kSpecialRegister), 7u);
}

TEST(X86_64Encoding, IsAnotherOrderThanDwarfs) {
  EXPECT_EQ(X86_64Encoding::ToDwarf(X86_64Encoding::kRbx), kX86_64Rbx);
  EXPECT_EQ(X86_64Encoding::ToDwarf(X86_64Encoding::kRsp), kX86_64Rsp);
  EXPECT_EQ(X86_64Encoding::ToDwarf(X86_64Encoding::kRbp), kX86_64Rbp);
  EXPECT_EQ(X86_64Encoding::ToDwarf(1), 2u) << "rcx";
  EXPECT_EQ(X86_64Encoding::ToDwarf(2), 1u) << "rdx";
  for (unsigned number = 8; number < 16; ++number)
    EXPECT_EQ(X86_64Encoding::ToDwarf(number), number);
}

TEST(X86_64Registers, CodeLiesBelowTheHoleInTheMiddle) {
  EXPECT_FALSE(X86_64Registers::IsCodeAddress(0));
  EXPECT_FALSE(X86_64Registers::IsCodeAddress(4095));
  EXPECT_TRUE(X86_64Registers::IsCodeAddress(4097)) << "instructions are not aligned";
  EXPECT_TRUE(X86_64Registers::IsCodeAddress((Address{1} << 47) - 1));
  EXPECT_FALSE(X86_64Registers::IsCodeAddress(Address{1} << 47));
  EXPECT_FALSE(X86_64Registers::IsCodeAddress(~Address{0})) << "a kernel's";
}

TEST(X86_64Registers, ACallPushesTheReturnAddress) {
  X86_64Registers registers;
  registers.set_link_register(5);
  EXPECT_EQ(registers.link_register(), 0u);
  EXPECT_EQ(X86_64Registers::ReturnAddressWords(2), 1u);
  EXPECT_EQ(X86_64Registers::PlainReturnAddress(~Address{0}), ~Address{0}) << "nothing is signed";
}

}  // namespace
}  // namespace strobe
