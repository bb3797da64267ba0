#include "strobe/unwind/stack_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace strobe {
namespace {

alignas(16) constexpr std::array<Address, 4> kWords = {10, 11, 12, 13};

TEST(LiveStackMemory, ReadsAlignedWordsWithinItsBounds) {
  const auto base = reinterpret_cast<Address>(kWords.data());
  const LiveStackMemory memory(base + 8, base + 24);
  Address word = 99;
  EXPECT_FALSE(memory.ReadWord(base, word));
  EXPECT_FALSE(memory.ReadWord(base + 12, word));
  EXPECT_FALSE(memory.ReadWord(base + 24, word));
  EXPECT_FALSE(memory.ReadWord(~Address{7}, word));
  EXPECT_FALSE(memory.ReadWord(0, word));
  EXPECT_EQ(word, 99u) << "untouched by a read that fails";
  EXPECT_TRUE(memory.ReadWord(base + 8, word));
  EXPECT_EQ(word, 11u);
  EXPECT_TRUE(memory.ReadWord(base + 16, word));
  EXPECT_EQ(word, 12u);
  EXPECT_EQ(memory.end(), base + 24);
}

TEST(LiveStackMemory, EmptyBoundsReadNothing) {
  Address word = 0;
  EXPECT_FALSE(LiveStackMemory(0, 0).ReadWord(0, word));
  EXPECT_FALSE(LiveStackMemory(64, 32).ReadWord(40, word));
  EXPECT_FALSE(LiveStackMemory(0, 7).ReadWord(0, word));
}

TEST(CopiedStackMemory, ReadsTheCopyAtTheOriginalAddresses) {
  const CopiedStackMemory memory(0x7000, std::as_bytes(std::span(kWords)));
  Address word = 99;
  EXPECT_FALSE(memory.ReadWord(0x6FF8, word));
  EXPECT_FALSE(memory.ReadWord(0x7004, word)) << "no word of a stack lies there";
  EXPECT_FALSE(memory.ReadWord(0x7020, word));
  EXPECT_FALSE(
      CopiedStackMemory(0x7000, std::as_bytes(std::span(kWords)).first(15)).ReadWord(0x7008, word))
      << "a byte is missing";
  EXPECT_FALSE(memory.ReadWord(~Address{0}, word));
  EXPECT_EQ(word, 99u);
  EXPECT_TRUE(memory.ReadWord(0x7018, word));
  EXPECT_EQ(word, 13u);
  EXPECT_EQ(memory.end(), 0x7020u);
  EXPECT_FALSE(CopiedStackMemory(0x7000, {}).ReadWord(0x7000, word));
}

TEST(CopiedStackMemory, ACopyMayBeginAndEndWithinAWord) {
  const auto bytes = std::as_bytes(std::span(kWords))
                         .subspan(4, 23);  // up to a byte before the end of the fourth word
  const CopiedStackMemory memory(0x7004, bytes);
  Address word = 99;
  EXPECT_FALSE(memory.ReadWord(0x7000, word));
  EXPECT_FALSE(memory.ReadWord(0x7004, word));
  EXPECT_FALSE(memory.ReadWord(0x7018, word));
  EXPECT_EQ(word, 99u);
  EXPECT_TRUE(memory.ReadWord(0x7008, word));
  EXPECT_EQ(word, 11u);
  EXPECT_TRUE(memory.ReadWord(0x7010, word));
  EXPECT_EQ(word, 12u);
  EXPECT_EQ(memory.end(), 0x7018u);
  EXPECT_FALSE(CopiedStackMemory(0x7004, bytes.first(3)).ReadWord(0x7008, word));
}

}  // namespace
}  // namespace strobe
