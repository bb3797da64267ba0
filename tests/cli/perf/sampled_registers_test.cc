#include "../../../src/cli/perf/sampled_registers.h"

#include <cstdint>
#include <vector>

#include "../perf_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::uint64_t kAllRegisters = 0xFF0FFF;  // as perf record asks for them

TEST(SampledRegistersTest, FindsEachRegisterByItsBit) {
  // The word of each bit is the bit's number.
  std::vector<std::uint64_t> words;
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    if ((kAllRegisters >> bit & 1) != 0) words.push_back(0x1000 + bit);
  }
  const Bytes bytes = Words(words);
  const SampledRegisters registers(kAllRegisters, AsBytes(bytes));
  EXPECT_EQ(registers.get().pc, 0x1000 + kX86_64PerfPc);
  EXPECT_EQ(registers.get().sp, 0x1007u);
  EXPECT_EQ(registers.get().fp, 0x1006u);
  ASSERT_NE(registers.get().general, nullptr);
  EXPECT_TRUE(SampledRegisters::AreIn(kAllRegisters));
}

TEST(SampledRegistersTest, OnlyTheMasksRegistersHaveWords) {
  const std::uint64_t mask = std::uint64_t{1} << 7 | std::uint64_t{1} << 8;
  const Bytes bytes = Words({0x7000, 0x400100});
  const SampledRegisters registers(mask, AsBytes(bytes));
  EXPECT_EQ(registers.get().sp, 0x7000u);
  EXPECT_EQ(registers.get().pc, 0x400100u);
  EXPECT_EQ(registers.get().fp, 0u);
}

TEST(SampledRegistersTest, ARecordingNeedsEachRegister) {
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    const std::uint64_t without = kAllRegisters & ~(std::uint64_t{1} << bit);
    const bool is_needed = bit <= 8 || (bit >= 16 && bit <= 23);
    EXPECT_EQ(SampledRegisters::AreIn(without), !is_needed) << bit;
  }
  EXPECT_FALSE(SampledRegisters::AreIn(0));
}

}  // namespace
}  // namespace strobe::internal
