#include "strobe/arch/dwarf_registers.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(DwarfRegisters, AreNumberedAsTheAbiSays) {
  const DwarfRegisters x86_64 = DwarfRegistersOf(Architecture::kX86_64);
  EXPECT_EQ(x86_64.sp, 7u);
  EXPECT_EQ(x86_64.fp, 6u);
  EXPECT_EQ(x86_64.special, 3u);
  EXPECT_FALSE(x86_64.ra_is_register());

  const DwarfRegisters aarch64 = DwarfRegistersOf(Architecture::kAarch64);
  EXPECT_EQ(aarch64.sp, 31u);
  EXPECT_EQ(aarch64.fp, 29u);
  EXPECT_EQ(aarch64.lr, 30u);
  EXPECT_EQ(aarch64.special, kNoRegister);
  EXPECT_TRUE(aarch64.ra_is_register());
}

}  // namespace
}  // namespace strobe
