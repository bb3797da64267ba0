#include "strobe/process/stack_copy.h"

#include <array>

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

class StackCopyTest : public ::testing::Test {
 protected:
  std::array<Address, 4> words_{1, 2, 3, 4};
  const X86_64Registers registers_{.pc = 0x401000, .sp = 0x7000, .fp = 0x7777};
  const StackCopy<X86_64Registers> copy_{registers_, std::as_bytes(std::span(words_))};
  Address word_ = 0;
};

TEST_F(StackCopyTest, HasTheWordsOfTheCopy) {
  EXPECT_EQ(copy_.end(), 0x7020u);
  EXPECT_TRUE(copy_.ReadWord(0x7000, word_));
  EXPECT_EQ(word_, 1u);
  EXPECT_TRUE(copy_.ReadWord(0x7018, word_));
  EXPECT_EQ(word_, 4u);
  EXPECT_FALSE(copy_.ReadWord(0x7004, word_)) << "is not aligned";
  EXPECT_FALSE(copy_.has_missed());
}

TEST_F(StackCopyTest, KnowsThatItIsTooShort) {
  EXPECT_FALSE(copy_.ReadWord(0x7020, word_));
  EXPECT_TRUE(copy_.has_missed());
}

TEST_F(StackCopyTest, KnowsThatAWalkHasLeftTheStack) {
  EXPECT_FALSE(copy_.ReadWord(0x6000, word_));
  EXPECT_TRUE(copy_.has_missed());
}

TEST_F(StackCopyTest, HasThePoppedFramePointerInTheRedZone) {
  EXPECT_TRUE(copy_.ReadWord(0x6FF8, word_));
  EXPECT_EQ(word_, 0x7777u);
  EXPECT_TRUE(copy_.ReadWord(0x7000 - 128, word_));
  EXPECT_FALSE(copy_.has_missed());
  EXPECT_FALSE(copy_.ReadWord(0x7000 - 136, word_));
}

TEST_F(StackCopyTest, Aarch64HasNoRedZone) {
  const StackCopy copy(Aarch64Registers{.pc = 0x401000, .sp = 0x7000, .fp = 0x7777},
                       std::as_bytes(std::span(words_)));
  EXPECT_TRUE(copy.ReadWord(0x7000, word_));
  EXPECT_FALSE(copy.ReadWord(0x6FF8, word_));
}

}  // namespace
}  // namespace strobe::testing
