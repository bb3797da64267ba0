// The further contract of a ResumableUnwinder as tests: a walk that stops at a missing table, and
// resumes once the table is built, gives the frames of a walk with all tables. For an unwinder of
// your own, which is made of a pointer to its tables:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyUnwinder, ResumableUnwinderConformance, MyUnwinder);
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
#include "strobe/core/stack.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/channels/stack_slice.h"
#include "strobe/testing/fakes/random_stack.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_rule.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

namespace strobe::testing {

template <class U>
class ResumableUnwinderConformance : public ::testing::Test {
 protected:
  static constexpr Address kText = 0x400000;
  static constexpr Address kTextBytes = Address{1} << 20;

  // Walks the stack once with all tables. Walks it again while some are missing: where that walk
  // stops, it resumes from a slice of the stack, as the collector does once a table is built. Both
  // must give the same stack.
  void WalkInParts(const NativeRegisters& registers, const LiveStackMemory& memory) {
    std::vector<Address> expected(kMaxFramesLimit);
    const WalkResult at_once = U(&whole_).Unwind(registers, memory, expected);
    ASSERT_FALSE(at_once.is_pending);
    expected.resize(at_once.count);

    const UnwindModules some = SomeTables(3);
    std::vector<Address> frames(kMaxFramesLimit);
    WalkResult walk = U(&some).Unwind(registers, memory, frames);
    frames.resize(walk.count);
    if (walk.is_pending) {
      ++resumed_;
      const internal::SliceWriter<LiveStackMemory> writer(registers, walk.stop, memory, 4096);
      alignas(8) std::array<std::byte, 4096> slice;
      const std::size_t bytes = writer.Write(slice.data(), 0, {});
      const std::span<const std::byte> written = std::span(slice).first(bytes);
      CheckFurtherPart(written, frames, expected, at_once.end);
      walk = internal::FinishWalk(U(&whole_), written, frames, kMaxFramesLimit);
    }
    ASSERT_FALSE(walk.is_pending);
    ASSERT_EQ(frames, expected);
    ASSERT_EQ(walk.end, at_once.end);
  }

  // The walks of WalkInParts that stopped at a missing table.
  [[nodiscard]] int resumed() const { return resumed_; }

  std::uint32_t Below(double limit) {
    return static_cast<std::uint32_t>(random_.Uniform() * limit);
  }
  RandomSource random_{20260103};

 private:
  static constexpr std::size_t kChunks = 16;
  static constexpr Address kChunkBytes = kTextBytes / kChunks;

  // Tables for all of the code. Their rules use both registers, end the stack, or are unknown.
  std::vector<UnwindModules::Entry> MakeTables() {
    std::vector<UnwindModules::Entry> entries;
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<UnwindRow> rows;
      for (std::uint32_t offset = 0; offset < kChunkBytes; offset += 1 + Below(4096))
        rows.push_back({offset, RandomRule()});
      const Address start = kText + chunk * kChunkBytes;
      entries.push_back(
          {start, start + kChunkBytes,
           std::make_shared<const UnwindTable>(static_cast<std::uint32_t>(kChunkBytes), rows,
                                               std::vector<SpecialRule>{SpecialRule()})});
    }
    return entries;
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

  // A resumed walk may stop again at the next missing table. `frames` are those before it resumes.
  void CheckFurtherPart(std::span<const std::byte> slice, std::vector<Address> frames,
                        const std::vector<Address>& expected, StackEnd end) {
    const UnwindModules more = SomeTables(6);
    const WalkResult walk = internal::FinishWalk(U(&more), slice, frames, kMaxFramesLimit);
    ASSERT_LE(frames.size(), expected.size());
    ASSERT_TRUE(std::equal(frames.begin(), frames.end(), expected.begin()));
    if (!walk.is_pending) {
      ASSERT_EQ(walk.end, end);
    }
  }

  const std::vector<UnwindModules::Entry> entries_ = MakeTables();
  const UnwindModules whole_{entries_};
  int resumed_ = 0;
};
TYPED_TEST_SUITE_P(ResumableUnwinderConformance);

TYPED_TEST_P(ResumableUnwinderConformance, AWalkThatIsResumedIsTheWholeWalk) {
  constexpr std::size_t kWords = 64;
  alignas(16) std::array<Address, kWords> words{};
  const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
  const LiveStackMemory memory(base, base + sizeof(words));
  for (int round = 0; round < 2000; ++round) {
    NativeRegisters registers;
    registers.fp = WriteFrameChain(this->random_, base, words);
    registers.sp = base;
    registers.pc = this->kText + this->Below(static_cast<double>(this->kTextBytes));
    this->WalkInParts(registers, memory);
    if (this->HasFailure()) FAIL() << "in round " << round;
  }
  EXPECT_GT(this->resumed(), 200);
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
