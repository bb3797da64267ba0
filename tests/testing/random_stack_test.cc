#include "strobe/testing/fakes/random_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "strobe/core/stack.h"
#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/unwind/frame_pointer_unwinder.h"

namespace strobe::testing {
namespace {

constexpr Address kBase = 0x7000;
constexpr std::size_t kWords = 32;

TEST(RandomStack, AFrameChainIsWalkedToItsEnd) {
  RandomSource random(1);
  for (int round = 0; round < 1000; ++round) {
    FakeStack stack(kBase, std::vector<Address>(kWords, 1));
    NativeRegisters registers;
    registers.pc = 0x400000;
    registers.sp = kBase;
    registers.fp = WriteFrameChain(random, kBase, stack.words());
    std::array<Address, kWords> frames{};
    const WalkResult walk = FramePointerUnwinder().Unwind(registers, stack, frames);
    ASSERT_EQ(walk.end, StackEnd::kComplete);
    // A frame takes two to five words.
    ASSERT_GE(walk.count, kWords / 5);
    ASSERT_LE(walk.count, kWords / 2);
  }
}

TEST(RandomStack, ARoomWithoutAFrameHasNoChain) {
  RandomSource random(1);
  std::array<Address, 1> words{};
  EXPECT_EQ(WriteFrameChain(random, kBase, words), 0u);
}

TEST(RandomStack, TemptingWordsPointIntoTheStackToItsEdgesAndElsewhere) {
  RandomSource random(1);
  bool is_first = false, is_last = false, is_beyond = false, is_misaligned = false, is_code = false;
  for (int i = 0; i < 10000; ++i) {
    const Address word = TemptingWord(random, kBase, kWords);
    is_first |= word == kBase;
    is_last |= word == kBase + (kWords - 1) * 8;
    is_beyond |= word == kBase + kWords * 8;
    is_misaligned |= word > kBase && word < kBase + kWords * 8 && word % 8 != 0;
    is_code |= word >= 0x400000 && word < 0x500000;
  }
  EXPECT_TRUE(is_first && is_last && is_beyond && is_misaligned && is_code);
}

}  // namespace
}  // namespace strobe::testing
