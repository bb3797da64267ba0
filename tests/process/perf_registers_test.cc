#include "strobe/process/perf_registers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kX86_64Mask = 0xFF01FF;
constexpr std::uint64_t kAarch64Mask = 0x1E0000000;

// The word of each bit of the mask is 0x1000 and the bit's number.
struct Sampled {
  explicit Sampled(std::uint64_t mask, Architecture architecture = Architecture::kX86_64,
                   std::uint64_t kind = PerfRegisters::k64Bit)
      : words(WordsOf(mask)),
        registers(architecture, mask, kind, std::as_bytes(std::span(words))) {}

  static std::vector<std::uint64_t> WordsOf(std::uint64_t mask) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t bit = 0; bit < 64; ++bit) {
      if ((mask >> bit & 1) != 0) words.push_back(0x1000 + bit);
    }
    return words;
  }

  const std::vector<std::uint64_t> words;
  const PerfRegisters registers;
};

TEST(PerfRegisterMaskTest, IsThatOfTheMachine) {
  EXPECT_EQ(PerfRegisterMask(Architecture::kX86_64), kX86_64Mask);
  EXPECT_EQ(PerfRegisterMask(Architecture::kAarch64), kAarch64Mask);
  EXPECT_EQ(PerfRegisterMask(), PerfRegisterMask(kNativeArchitecture));
  EXPECT_EQ(PerfRegisterMask(*ArchitectureOfElf(62)), kX86_64Mask);
  EXPECT_EQ(PerfRegisterMask(*ArchitectureOfElf(183)), kAarch64Mask);
  EXPECT_EQ(ArchitectureOfElf(3), std::nullopt) << "i386";
  EXPECT_EQ(ArchitectureOfElf(40), std::nullopt) << "32-bit ARM";
}

// Those that a walk needs, what perf record asks for, and every bit: the places differ, the values
// do not.
TEST(PerfRegistersTest, FindsEachRegisterByItsBitInAnyMask) {
  for (const std::uint64_t mask : {kX86_64Mask, std::uint64_t{0xFF0FFF}, ~std::uint64_t{0}}) {
    const Sampled sampled(mask);
    ASSERT_TRUE(sampled.registers.status().ok()) << sampled.registers.status();
    const auto& registers = std::get<X86_64Registers>(sampled.registers.get());
    EXPECT_EQ(registers.pc, 0x1008u);
    EXPECT_EQ(registers.sp, 0x1007u);
    EXPECT_EQ(registers.fp, 0x1006u);
    ASSERT_TRUE(registers.has_general_registers());
    // DWARF's rax, rdx, rcx, rbx and r15 are perf's ax, dx, cx, bx and r15.
    EXPECT_EQ(registers.general_register(0), 0x1000u);
    EXPECT_EQ(registers.general_register(1), 0x1003u);
    EXPECT_EQ(registers.general_register(2), 0x1002u);
    EXPECT_EQ(registers.general_register(3), 0x1001u);
    EXPECT_EQ(registers.general_register(15), 0x1017u);
  }
  for (const std::uint64_t mask : {kAarch64Mask, std::uint64_t{0x1FFFFFFFF}, ~std::uint64_t{0}}) {
    const Sampled sampled(mask, Architecture::kAarch64);
    ASSERT_TRUE(sampled.registers.status().ok()) << sampled.registers.status();
    const auto& registers = std::get<Aarch64Registers>(sampled.registers.get());
    EXPECT_EQ(registers.fp, 0x101Du);
    EXPECT_EQ(registers.lr, 0x101Eu);
    EXPECT_EQ(registers.sp, 0x101Fu);
    EXPECT_EQ(registers.pc, 0x1020u);
  }
}

TEST(PerfRegistersTest, AMaskThatLacksARegisterIsRefused) {
  for (const Architecture architecture : {Architecture::kX86_64, Architecture::kAarch64}) {
    const std::uint64_t needed = PerfRegisterMask(architecture);
    for (std::uint64_t bit = 0; bit < 64; ++bit) {
      const std::uint64_t without = ~(std::uint64_t{1} << bit);
      const bool is_needed = (needed >> bit & 1) != 0;
      EXPECT_EQ(Sampled(without, architecture).registers.status().ok(), !is_needed) << bit;
    }
  }
  const absl::Status status = Sampled(kX86_64Mask & ~std::uint64_t{0x100}).registers.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("lacks the registers 0x100,"));
}

TEST(PerfRegistersTest, ThoseOf32BitCodeAreNeverTakenForOthers) {
  for (const Architecture architecture : {Architecture::kX86_64, Architecture::kAarch64}) {
    const Sampled sampled(~std::uint64_t{0}, architecture, PerfRegisters::k32Bit);
    EXPECT_EQ(sampled.registers.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(sampled.registers.status().message(), HasSubstr("32-bit"));
    EXPECT_EQ(std::get<X86_64Registers>(sampled.registers.get()).pc, 0u);
  }
}

TEST(PerfRegistersTest, WhatASampleDoesNotHaveIsNotRead) {
  const PerfRegisters none(Architecture::kX86_64, kX86_64Mask, PerfRegisters::kNone, {});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  const std::vector<std::uint64_t> words = Sampled::WordsOf(kX86_64Mask);
  const auto bytes = std::as_bytes(std::span(words));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const PerfRegisters cut(Architecture::kX86_64, kX86_64Mask, PerfRegisters::k64Bit,
                            bytes.first(size));
    EXPECT_EQ(cut.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_EQ(Sampled(kX86_64Mask, Architecture::kX86_64, 3).registers.status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace strobe::testing
