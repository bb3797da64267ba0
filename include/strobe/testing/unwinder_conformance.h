// The contract of an Unwinder as tests. An unwinder of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyUnwinder, UnwinderConformance, MyUnwinder);
//
// The tests hold for all unwinders, whatever frames each finds on a given stack. There is one more
// suite for unwinders with a memo, IncrementalUnwinderConformance, and one for unwinders whose
// tables may be missing, ResumableUnwinderConformance.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/stack_slice.h"
#include "strobe/testing/fake_stack.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe::testing {

// A word that an unwinder may follow: a small number, a number like a code address, or a pointer
// into the stack, to its edges, or not aligned.
inline Address TemptingWord(RandomSource& random, Address base, std::size_t words) {
  const auto below = [&](double limit) { return static_cast<Address>(random.Uniform() * limit); };
  switch (below(8)) {
    case 0: return below(3);
    case 1: return 0x400000 + below(1 << 20);
    case 2: return base + below(static_cast<double>(words * 8));
    case 3: return base + words * 8 - below(24);
    case 4: return ~below(64);
    case 5: return below(0x1p63) * 2;
    default: return base + below(static_cast<double>(words)) * 8;
  }
}

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

// Writes a chain of frames over `words`; the address of the first word is `base`. Each frame has
// its caller's frame pointer and a return address; the last has two zeroes. Returns the innermost
// frame pointer.
inline Address WriteFrameChain(RandomSource& random, Address base, std::span<Address> words) {
  Address first = 0;
  Address* link = &first;
  for (std::size_t at = 0; at + 2 <= words.size();
       at += 2 + static_cast<std::size_t>(random.Uniform() * 4)) {
    *link = base + at * sizeof(Address);
    link = &words[at];
    words[at + 1] = 0x400000 + static_cast<Address>(random.Uniform() * (1 << 18)) * 4;
    words[at] = 0;
  }
  link[link == &first ? 0 : 1] = 0;
  return first;
}

STROBE_HOLDS_HIDDEN_BEGIN
// The further contract of an IncrementalUnwinder.
template <class U>
class IncrementalUnwinderConformance : public UnwinderConformance<U> {
 protected:
  // Walks with the memo and without it, and checks that both give the same stack.
  void WalkTwice(const NativeRegisters& registers, const LiveStackMemory& memory,
                 std::size_t limit) {
    const std::vector<Address> fresh = this->Walk(registers, memory, limit);
    const StackEnd fresh_end = this->result_.end;
    std::vector<Address> output(limit);
    const WalkResult result = U().Unwind(registers, memory, *memo_, output);
    ASSERT_LE(result.count + result.shared, limit);
    ASSERT_LE(result.shared, last_.size()) << "shares frames that the last walk had not";
    output.resize(result.count);
    output.insert(output.end(), last_.end() - static_cast<std::ptrdiff_t>(result.shared),
                  last_.end());
    EXPECT_EQ(output, fresh);
    EXPECT_EQ(result.end, fresh_end);
    last_ = std::move(output);
  }

 private:
  std::unique_ptr<internal::WalkMemo> memo_ = std::make_unique<internal::WalkMemo>();
  std::vector<Address> last_;  // frames of the previous walk
};
STROBE_HOLDS_HIDDEN_END
TYPED_TEST_SUITE_P(IncrementalUnwinderConformance);

// Between two walks of a thread, any words, the registers, and the size of the output may change.
TYPED_TEST_P(IncrementalUnwinderConformance, AMemoChangesNoFrame) {
  constexpr std::size_t kWords = 64;
  RandomSource random(20260102);
  alignas(16) std::array<Address, kWords> words{};
  const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
  const LiveStackMemory memory(base, base + sizeof(words));
  const auto below = [&](double limit) {
    return static_cast<std::size_t>(random.Uniform() * limit);
  };
  NativeRegisters registers;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t change = below(16);
    if (change == 0) {
      for (Address& word : words) word = TemptingWord(random, base, kWords);
    } else if (change <= 2) {
      registers.fp = WriteFrameChain(random, base, words);
    } else if (change <= 12) {
      for (std::size_t i = below(3); i > 0; --i)
        words[below(kWords)] = TemptingWord(random, base, kWords);
    }
    if (below(3) == 0) {
      const Address fp = registers.fp;
      registers = this->RandomRegisters(random, base, kWords);
      if (below(2) == 0) registers.fp = fp;
    }
    this->WalkTwice(registers, memory, below(8) == 0 ? 1 + below(8) : kMaxFramesLimit);
    if (this->HasFailure()) FAIL() << "in round " << round;
  }
}

REGISTER_TYPED_TEST_SUITE_P(IncrementalUnwinderConformance, AMemoChangesNoFrame);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(IncrementalUnwinderConformance);

// The further contract of a ResumableUnwinder.
template <class U>
class ResumableUnwinderConformance : public ::testing::Test {
 protected:
  static constexpr Address kText = 0x400000;
  static constexpr Address kTextBytes = Address{1} << 20;
  static constexpr std::size_t kChunks = 16;
  static constexpr Address kChunkBytes = kTextBytes / kChunks;

  // Makes tables for all of the code. Their rules use both registers, end the stack, or are
  // unknown.
  ResumableUnwinderConformance() {
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<UnwindRow> rows;
      for (std::uint32_t offset = 0; offset < kChunkBytes; offset += 1 + Below(4096))
        rows.push_back({offset, RandomRule()});
      const Address start = kText + chunk * kChunkBytes;
      entries_.push_back(
          {start, start + kChunkBytes,
           std::make_shared<const UnwindTable>(static_cast<std::uint32_t>(kChunkBytes), rows,
                                               std::vector<SpecialRule>{SpecialRule()})});
    }
  }

  std::uint32_t Below(double limit) {
    return static_cast<std::uint32_t>(random_.Uniform() * limit);
  }
  UnwindRule RandomRule() {
    switch (Below(12)) {
      case 0: return UnwindRule::Stop();
      case 1: return UnwindRule::Unknown();
      case 2:
      case 3:
      case 4: return UnwindRule::Frame(UnwindRule::Kind::kFromFp, 2, 1, 2);
      default: return UnwindRule::Frame(UnwindRule::Kind::kFromSp, 2 + Below(3), 1, Below(2) * 2);
    }
  }

  // The tables if each chunk is still missing with a chance of one in `one_in`.
  UnwindModules SomeTables(double one_in) {
    std::vector<UnwindModules::Entry> some = entries_;
    for (UnwindModules::Entry& entry : some) {
      if (random_.Uniform() * one_in < 1) entry.table = nullptr;
    }
    return UnwindModules(std::move(some));
  }

  RandomSource random_{20260103};
  std::vector<UnwindModules::Entry> entries_;
};
TYPED_TEST_SUITE_P(ResumableUnwinderConformance);

// A walk that stops at a missing table resumes from a slice of its stack, as the collector does
// once the table is built. It may stop again at the next missing table.
TYPED_TEST_P(ResumableUnwinderConformance, AWalkThatIsResumedIsTheWholeWalk) {
  constexpr std::size_t kWords = 64;
  const UnwindModules whole(this->entries_);
  alignas(16) std::array<Address, kWords> words{};
  const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
  const LiveStackMemory memory(base, base + sizeof(words));
  int resumed = 0;
  for (int round = 0; round < 2000; ++round) {
    NativeRegisters registers;
    registers.fp = WriteFrameChain(this->random_, base, words);
    registers.sp = base;
    registers.pc = this->kText + this->Below(static_cast<double>(this->kTextBytes));
    std::vector<Address> expected(kMaxFramesLimit);
    const WalkResult at_once = TypeParam(&whole).Unwind(registers, memory, expected);
    ASSERT_FALSE(at_once.is_pending);
    expected.resize(at_once.count);

    const UnwindModules some = this->SomeTables(3);
    std::vector<Address> frames(kMaxFramesLimit);
    WalkResult walk = TypeParam(&some).Unwind(registers, memory, frames);
    frames.resize(walk.count);
    if (walk.is_pending) {
      ++resumed;
      const internal::SliceWriter<LiveStackMemory> writer(registers, walk.stop, memory, 4096);
      alignas(8) std::array<std::byte, 4096> slice;
      bool is_whole = false;
      const std::size_t bytes = writer.Write(slice.data(), is_whole);
      ASSERT_TRUE(is_whole);
      const std::span<const std::byte> written = std::span(slice).first(bytes);
      const UnwindModules more = this->SomeTables(6);
      std::vector<Address> some_frames = frames;
      const WalkResult some_walk =
          internal::FinishWalk(TypeParam(&more), written, some_frames, kMaxFramesLimit);
      ASSERT_LE(some_frames.size(), expected.size());
      ASSERT_TRUE(std::equal(some_frames.begin(), some_frames.end(), expected.begin()));
      if (!some_walk.is_pending) {
        ASSERT_EQ(some_walk.end, at_once.end);
      }
      walk = internal::FinishWalk(TypeParam(&whole), written, frames, kMaxFramesLimit);
    }
    ASSERT_FALSE(walk.is_pending);
    ASSERT_EQ(frames, expected) << "in round " << round;
    ASSERT_EQ(walk.end, at_once.end);
  }
  EXPECT_GT(resumed, 200);
}

// Without tables, no walk is pending.
TYPED_TEST_P(ResumableUnwinderConformance, WithoutModulesNothingIsPending) {
  const std::array<Address, 8> words{};
  const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
  NativeRegisters registers;
  registers.pc = this->kText;
  registers.sp = base;
  std::array<Address, 8> output{};
  EXPECT_FALSE(TypeParam(nullptr)
                   .Unwind(registers, LiveStackMemory(base, base + sizeof(words)), output)
                   .is_pending);
}

REGISTER_TYPED_TEST_SUITE_P(ResumableUnwinderConformance, AWalkThatIsResumedIsTheWholeWalk,
                            WithoutModulesNothingIsPending);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ResumableUnwinderConformance);

}  // namespace strobe::testing
