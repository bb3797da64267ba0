#include "strobe/arch/current_registers.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

#if defined(__GNUC__)
// Where the caller goes on, and what registers were read meanwhile.
__attribute__((noinline)) NativeRegisters RegistersHere(Address& return_address) {
  return_address = reinterpret_cast<Address>(__builtin_return_address(0));
  const CurrentRegisters registers;
  return *registers.get();
}

TEST(CurrentRegisters, AreThoseOfTheFunctionThatReadsThem) {
  if (!kReadsCurrentRegisters) GTEST_SKIP() << "not for this processor";
  Address return_address = 0;
  const NativeRegisters registers = RegistersHere(return_address);
  const auto function = reinterpret_cast<Address>(&RegistersHere);
  EXPECT_GE(registers.pc, function);
  EXPECT_LT(registers.pc, function + 512);
  const StackBounds stack = NativePlatform::CurrentThread().stack;
  // The bounds of a stack that grows say how far it had grown by then.
  EXPECT_TRUE(stack.Holds(registers.sp) || (stack.grows && registers.sp < stack.low));
  // AddressSanitizer keeps locals elsewhere.
  EXPECT_LT(registers.sp, reinterpret_cast<Address>(__builtin_frame_address(0))) << "of a callee";
}
#endif

}  // namespace
}  // namespace strobe
