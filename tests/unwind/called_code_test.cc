#include "../../src/unwind/decoded/called_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "code_reader.h"

namespace strobe::internal {
namespace {

using testing::CodeReader;
using testing::kCodeStart;

constexpr RegisterSet kEncodedRax = 1u << 0;
constexpr RegisterSet kEncodedRcx = 1u << 1;
constexpr RegisterSet kEncodedRdx = 1u << 2;

RegisterSet WrittenByCode(std::vector<std::uint8_t> code) {
  return CalledCode(CodeReader(std::move(code))).WrittenBy(kCodeStart);
}

TEST(CalledCode, WritesWhatItsInstructionsWriteOnAllPaths) {
  // 1: dec %rcx; jnz 1b; ret
  EXPECT_EQ(WrittenByCode({0x48, 0xFF, 0xC9, 0x75, 0xFB, 0xC3}), kEncodedRcx);
  // test %rcx, %rcx; je 1f; xor %edx, %edx; ret; 1: mov $1, %al; ret
  EXPECT_EQ(WrittenByCode({0x48, 0x85, 0xC9, 0x74, 0x03, 0x31, 0xD2, 0xC3, 0xB0, 0x01, 0xC3}),
            kEncodedRax | kEncodedRdx);
  // jmp 1f; xor %edx, %edx; 1: mul %rcx; ret
  EXPECT_EQ(WrittenByCode({0xEB, 0x02, 0x31, 0xD2, 0x48, 0xF7, 0xE1, 0xC3}),
            kEncodedRax | kEncodedRdx);
  // Neither does a register that is given back leave the caller's value alone.
  EXPECT_EQ(WrittenByCode({0x50, 0x58, 0xC3}), kEncodedRax) << "push %rax; pop %rax; ret";
}

TEST(CalledCode, WritesWhatItCallsWrites) {
  // call 1f; ret; 1: inc %rcx; ret
  EXPECT_EQ(WrittenByCode({0xE8, 0x01, 0, 0, 0, 0xC3, 0x48, 0xFF, 0xC1, 0xC3}), kEncodedRcx);
  // call itself; ret
  EXPECT_EQ(WrittenByCode({0xE8, 0xFB, 0xFF, 0xFF, 0xFF, 0xC3}), 0);
}

TEST(CalledCode, MayWriteEverythingWhereItCannotBeFollowed) {
  EXPECT_EQ(WrittenByCode({0xFF, 0xD0, 0xC3}), kAllRegisters) << "call *%rax";
  EXPECT_EQ(WrittenByCode({0xFF, 0x25, 0, 0, 0, 0}), kAllRegisters) << "a stub";
  EXPECT_EQ(WrittenByCode({0x06}), kAllRegisters) << "no instruction";
  EXPECT_EQ(WrittenByCode({0xEB, 0x70}), kAllRegisters) << "a jump to where nothing is";
  EXPECT_EQ(WrittenByCode({0x48}), kAllRegisters) << "a part of an instruction";
  std::vector<std::uint8_t> longest(CalledCode::kMaxInstructions - 1, 0x90);
  longest.push_back(0xC3);
  EXPECT_EQ(WrittenByCode(longest), 0);
  longest.insert(longest.begin(), 0x90);
  EXPECT_EQ(WrittenByCode(longest), kAllRegisters) << "too long";
}

TEST(CalledCode, ReturnsForSureWhereItCallsNothing) {
  const auto returns = [](std::vector<std::uint8_t> code) {
    return CalledCode(CodeReader(std::move(code))).Returns(kCodeStart);
  };
  EXPECT_TRUE(returns({0x31, 0xC0, 0xC3})) << "xor %eax, %eax; ret";
  EXPECT_FALSE(returns({0xE8, 0x01, 0, 0, 0, 0xC3, 0xC3})) << "call 1f; ret; 1: ret";
  EXPECT_FALSE(returns({0xEB, 0xFE})) << "1: jmp 1b";
  EXPECT_FALSE(returns({0x0F, 0x0B})) << "ud2";
  EXPECT_FALSE(returns({0x74, 0x01, 0xC3, 0x06})) << "je 1f; ret; 1: no instruction";
}

TEST(CalledCode, KnowsBetterOnlyWhereTheCallerNeedsIt) {
  CalledCode called(CodeReader({0x48, 0xFF, 0xC9, 0xC3}));  // dec %rcx; ret
  DecodedFrame caller;
  EXPECT_EQ(called.WrittenByCall(caller, kCodeStart), kScratchRegisters);
  caller.places[0] = {FramePlace::kCfa, -8};
  EXPECT_EQ(called.WrittenByCall(caller, kCodeStart), kScratchRegisters) << "by its stack pointer";
  caller.places[DecodedFrame::kSp] = {FramePlace::kAnchor, 0};
  EXPECT_EQ(called.WrittenByCall(caller, kCodeStart), kEncodedRcx);
  EXPECT_EQ(called.WrittenByCall(caller, std::nullopt), kScratchRegisters);
}

}  // namespace
}  // namespace strobe::internal
