#include "strobe/testing/fakes/fake_stack.h"

#include <gtest/gtest.h>

namespace strobe::testing {
namespace {

TEST(FakeStack, ReadsItsWordsAndNothingElse) {
  const FakeStack stack(0x7000, {10, 11});
  Address word = 99;
  EXPECT_FALSE(stack.ReadWord(0x6FF8, word));
  EXPECT_FALSE(stack.ReadWord(0x7004, word));
  EXPECT_FALSE(stack.ReadWord(0x7010, word));
  EXPECT_FALSE(stack.ReadWord(~Address{7}, word));
  EXPECT_EQ(word, 99u);
  EXPECT_TRUE(stack.ReadWord(0x7008, word));
  EXPECT_EQ(word, 11u);
  EXPECT_EQ(stack.end(), 0x7010u);
}

TEST(FakeStack, BytesAreTheWordsInMemoryOrder) {
  const FakeStack stack(0x7000, {10, 11});
  Address word = 0;
  EXPECT_TRUE(CopiedStackMemory(stack.base(), stack.bytes()).ReadWord(0x7008, word));
  EXPECT_EQ(word, 11u);
}

}  // namespace
}  // namespace strobe::testing
