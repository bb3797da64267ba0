#include "strobe/arch/registers.h"

#include <string>
#include <type_traits>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe {
namespace {

TEST(Registers, BothArchitecturesAreThereOnEveryHost) {
  const X86_64Registers x86{.pc = 1, .sp = 2, .fp = 3};
  const Aarch64Registers arm{.pc = 1, .sp = 2, .fp = 3, .lr = 4};
  EXPECT_EQ(x86.fp, arm.fp);
  EXPECT_EQ(arm.lr, 4u);
  EXPECT_EQ(Aarch64Registers().lr, 0u);
}

TEST(Registers, NativeOnesAreThisMachines) {
  const std::string name = testing::ProcessorName();
  if (name != "x86_64" && name != "aarch64") GTEST_SKIP() << "no registers of our own for " << name;
  EXPECT_EQ((std::is_same_v<NativeRegisters, X86_64Registers>), name == "x86_64");
  EXPECT_EQ(kNativeArchitecture == Architecture::kX86_64, name == "x86_64");
}

}  // namespace
}  // namespace strobe
