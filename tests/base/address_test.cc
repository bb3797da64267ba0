#include "strobe/base/address.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(Address, HoldsEveryPointerAndTheWholeRange) {
  int object = 0;
  const auto address = static_cast<Address>(reinterpret_cast<std::uintptr_t>(&object));
  EXPECT_EQ(reinterpret_cast<int*>(static_cast<std::uintptr_t>(address)), &object);
  // A kernel's or another process's address must not become a negative number.
  EXPECT_GT(Address{0xFFFFFFFFFFFFF000}, Address{0x7FFFFFFFFFFF});
}

}  // namespace
}  // namespace strobe
