// The contract of an Unwinder as tests. An unwinder of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyUnwinder, UnwinderConformance, MyUnwinder);
//
// The tests hold for all unwinders, whatever frames each finds on a given stack. Unwinders with a
// memo have one more suite (incremental_unwinder_conformance.h), and so have unwinders whose tables
// may be missing (resumable_unwinder_conformance.h).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/core/stack.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/testing/fakes/random_stack.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwinder.h"

namespace strobe::testing {

template <class U>
class UnwinderConformance : public ::testing::Test {
 protected:
  static constexpr Address kGuard = 0xDEADDEADDEADDEAD;

  // Unwinds into an output of `limit` frames, checks what must hold for every walk, and returns the
  // frames.
  template <StackMemory M>
  std::vector<Address> Walk(const NativeRegisters& registers, const M& memory, std::size_t limit) {
    std::vector<Address> output(limit + 8, kGuard);
    result_ = U().Unwind(registers, memory, std::span(output).first(limit));
    EXPECT_LE(result_.count, limit);
    for (std::size_t i = limit; i < output.size(); ++i)
      EXPECT_EQ(output[i], kGuard) << "wrote past the output";
    if (limit > 0) {
      EXPECT_GE(result_.count, 1u);
      EXPECT_EQ(output[0], registers.pc);
    }
    output.resize(std::min(result_.count, limit));
    return output;
  }

  NativeRegisters RandomRegisters(RandomSource& random, Address base, std::size_t words) {
    NativeRegisters registers;
    registers.pc = 0x400000 + static_cast<Address>(random.Uniform() * 4096);
    registers.sp = base + (random.Uniform() < 0.9 ? 0 : TemptingWord(random, base, words));
    registers.fp = TemptingWord(random, base, words);
    return registers;
  }

  WalkResult result_;
};
TYPED_TEST_SUITE_P(UnwinderConformance);

// An empty output is already full: nothing is written, and the walk is truncated.
TYPED_TEST_P(UnwinderConformance, EmptyOutputIsTruncated) {
  const FakeStack stack(0x7000, {0, 0});
  NativeRegisters registers;
  registers.pc = 0x400000;
  registers.sp = 0x7000;
  EXPECT_TRUE(this->Walk(registers, stack, 0).empty());
  EXPECT_EQ(this->result_.end, StackEnd::kTruncated);
}

// If no stack can be read, the walk still returns the pc.
TYPED_TEST_P(UnwinderConformance, UnreadableStackGivesThePc) {
  NativeRegisters registers;
  registers.pc = 0x400123;
  registers.sp = registers.fp = 0x7000;
  EXPECT_EQ(this->Walk(registers, FakeStack(0x7000, {}), 16), std::vector<Address>{0x400123});
  EXPECT_EQ(this->Walk(registers, CopiedStackMemory(0x7000, {}), 16),
            std::vector<Address>{0x400123});
  EXPECT_EQ(this->Walk(registers, LiveStackMemory(0, 0), 16), std::vector<Address>{0x400123});
}

// Whatever the stack holds, the walk ends, stays within the output and the memory, and has the same
// result each time. A smaller output has the first frames of a larger one, and the walk is
// truncated exactly if frames are missing.
TYPED_TEST_P(UnwinderConformance, ArbitraryStacks) {
  constexpr std::size_t kWords = 48;
  RandomSource random(20260101);
  for (int round = 0; round < 20000; ++round) {
    const Address base = 0x7FF000000000 + (random.Uniform() < 0.5 ? 0 : 8);
    FakeStack stack(base, std::vector<Address>(kWords));
    for (Address& word : stack.words()) word = TemptingWord(random, base, kWords);
    const NativeRegisters registers = this->RandomRegisters(random, base, kWords);
    const std::vector<Address> all = this->Walk(registers, stack, kMaxFramesLimit);
    const WalkResult whole = this->result_;
    ASSERT_LT(all.size(), kMaxFramesLimit)
        << "48 words cannot hold so many frames: the walk went round in circles";
    const auto limit = static_cast<std::size_t>(random.Uniform() * 6);
    const std::vector<Address> some = this->Walk(registers, stack, limit);
    ASSERT_EQ(some, std::vector<Address>(
                        all.begin(),
                        all.begin() + static_cast<std::ptrdiff_t>(std::min(limit, all.size()))));
    ASSERT_EQ(this->result_.end, limit < all.size() ? StackEnd::kTruncated : whole.end);
  }
}

// An unwinder invents no address: every address after the first is a word of the stack, or came
// from the registers. It is one less than the word, unless a signal frame gave the exact address.
TYPED_TEST_P(UnwinderConformance, EveryCallerStandsOnTheStack) {
  constexpr std::size_t kWords = 32;
  RandomSource random(7);
  for (int round = 0; round < 5000; ++round) {
    FakeStack stack(0x10000, std::vector<Address>(kWords));
    for (Address& word : stack.words()) word = TemptingWord(random, 0x10000, kWords);
    const NativeRegisters registers = this->RandomRegisters(random, 0x10000, kWords);
    const std::vector<Address> frames = this->Walk(registers, stack, 64);
    for (std::size_t i = 1; i < frames.size(); ++i) {
      const bool found = std::any_of(stack.words().begin(), stack.words().end(), [&](Address word) {
        return word == frames[i] || word == frames[i] + 1;
      });
      // A return address stripped to its low 48 bits. Frame 1 may also come from the link register.
      const bool stripped =
          std::any_of(stack.words().begin(), stack.words().end(),
                      [&](Address word) { return ((word - 1) & 0xFFFFFFFFFFFF) == frames[i]; });
      ASSERT_TRUE(found || stripped || i == 1) << "frame " << i;
    }
  }
}

// A walk of the live stack and a walk of its copy give the same frames.
TYPED_TEST_P(UnwinderConformance, CopyAndLiveAgree) {
  constexpr std::size_t kWords = 40;
  RandomSource random(99);
  alignas(16) std::array<Address, kWords> words;
  const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
  for (int round = 0; round < 5000; ++round) {
    for (Address& word : words) word = TemptingWord(random, base, kWords);
    const NativeRegisters registers = this->RandomRegisters(random, base, kWords);
    const std::vector<Address> live =
        this->Walk(registers, LiveStackMemory(base, base + sizeof(words)), 64);
    const StackEnd live_end = this->result_.end;
    ASSERT_EQ(this->Walk(registers, CopiedStackMemory(base, std::as_bytes(std::span(words))), 64),
              live);
    ASSERT_EQ(this->result_.end, live_end);
  }
}

REGISTER_TYPED_TEST_SUITE_P(UnwinderConformance, EmptyOutputIsTruncated, UnreadableStackGivesThePc,
                            ArbitraryStacks, EveryCallerStandsOnTheStack, CopyAndLiveAgree);

}  // namespace strobe::testing
