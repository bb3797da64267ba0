#include "../../src/arch/system_call.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace strobe::internal {
namespace {

using Code = std::vector<std::uint8_t>;

TEST(SystemCallBefore, TheNumberIsLoadedJustBefore) {
  EXPECT_EQ(SystemCallBefore(Code{0xB8, 0xE8, 0, 0, 0, 0x0F, 0x05}), 232) << "epoll_wait";
  EXPECT_EQ(SystemCallBefore(Code{0x90, 0x90, 0xB8, 7, 0, 0, 0, 0x0F, 0x05}), 7);
}

TEST(SystemCallBefore, OneLoadFromTheStackMayBeInBetween) {
  // mov $0x2d, %eax; mov 0x8(%rsp), %rsi; syscall
  EXPECT_EQ(SystemCallBefore(Code{0xB8, 0x2D, 0, 0, 0, 0x48, 0x8B, 0x74, 0x24, 0x08, 0x0F, 0x05}),
            45);
  // mov $0x10e, %eax; mov 0x1c(%rsp), %edi; syscall
  EXPECT_EQ(SystemCallBefore(Code{0xB8, 0x0E, 1, 0, 0, 0x8B, 0x7C, 0x24, 0x1C, 0x0F, 0x05}), 270);
}

TEST(SystemCallBefore, TheNumberOfReadIsZero) {
  EXPECT_EQ(SystemCallBefore(Code{0x90, 0x90, 0x90, 0x31, 0xC0, 0x0F, 0x05}), 0);
  EXPECT_EQ(SystemCallBefore(Code{0x90, 0x90, 0x44, 0x31, 0xC0, 0x0F, 0x05}), -1)
      << "xor %r8d, %eax";
}

TEST(SystemCallBefore, OtherCodeHasNoNumber) {
  EXPECT_EQ(SystemCallBefore(Code{}), -1);
  EXPECT_EQ(SystemCallBefore(Code{0x05}), -1);
  EXPECT_EQ(SystemCallBefore(Code{0x0F, 0x05}), -1) << "nothing is known of what is before";
  EXPECT_EQ(SystemCallBefore(Code{0xE8, 0, 0, 0, 0x0F, 0x05}), -1) << "a part of a load";
  EXPECT_EQ(SystemCallBefore(Code{0xB8, 7, 0, 0, 0, 0x0F, 0x0B}), -1) << "no system call";
  EXPECT_EQ(SystemCallBefore(Code{0x48, 0x89, 0xF8, 0x90, 0x90, 0x0F, 0x05}), -1)
      << "the number comes from a register";
  EXPECT_EQ(SystemCallBefore(Code{0xB8, 7, 0, 0, 0x80, 0x0F, 0x05}), -1) << "no number";
  // mov $0x2d, %eax; mov 0x8(%rbp), %rsi; syscall: not as compilers write it
  EXPECT_EQ(SystemCallBefore(Code{0xB8, 0x2D, 0, 0, 0, 0x48, 0x8B, 0x75, 0x08, 0x90, 0x0F, 0x05}),
            -1);
}

}  // namespace
}  // namespace strobe::internal
