#include "strobe/unwind/incremental_walk.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "walk_machine.h"

namespace strobe::testing {
namespace {

TEST(IncrementalWalk, FindsTheSameStacksAsAWalkWithoutIt) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    Machine machine(RandomFunctions(random, 40));
    Walker walker(machine);
    std::size_t frames = 0;
    std::size_t shared = 0;
    for (int step = 0; step < 2000; ++step) {
      const std::uint64_t kind = random() % 100;
      for (std::uint64_t i = kind < 90 ? random() % 4 : random() % 40; i > 0 && machine.depth() > 0;
           --i)
        machine.Return();
      if (random() % 3 == 0) machine.Run(random());
      for (std::uint64_t i = kind < 90 ? random() % 5 : random() % 60;
           i > 0 && machine.depth() < 300; --i) {
        machine.Call(1 + random() % 39, random());
      }
      // Anything is written anywhere: the two must still agree.
      Address* broken = nullptr;
      Address before = 0;
      if (random() % 20 == 0) {
        broken =
            &machine.Word(machine.registers().sp +
                          random() % ((Machine::kTop - machine.registers().sp) / 8 + 1) / 2 * 8);
        before = std::exchange(
            *broken, random() % 2 == 0 ? random() : machine.registers().sp + random() % 64 * 8);
      }
      const WalkResult result = walker.Walk(random() % 50 == 0 ? 1 + random() % 100 : 2048);
      if (broken != nullptr) *broken = before;
      frames += result.count + result.shared;
      shared += result.shared;
      if (HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    EXPECT_GT(shared, frames / 2) << "seed " << seed;
  }
}

class IncrementalWalkTest : public WalkMachineTest {};

TEST_F(IncrementalWalkTest, AnUnchangedStackIsSharedWhole) {
  Call({1, 2, 3, 1, 2});
  EXPECT_EQ(walker_.Walk().shared, 0u);
  const WalkResult again = walker_.Walk();
  EXPECT_EQ(again.count, 0u);
  EXPECT_EQ(again.shared, 6u);
}

TEST_F(IncrementalWalkTest, OnlyTheFramesThatChangedAreWritten) {
  Call({1, 2, 3, 1, 2});
  walker_.Walk();
  machine_.Return();
  Call({1, 1});
  const WalkResult result = walker_.Walk();
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.shared, 5u);
}

TEST_F(IncrementalWalkTest, AStackThatSharedOnlyItsRootIsSharedWholeTheNextTime) {
  Call({1, 2, 3});
  walker_.Walk();
  for (int i = 0; i < 3; ++i) machine_.Return();
  Call({3, 1, 2, 1});
  EXPECT_EQ(walker_.Walk().shared, 1u);
  EXPECT_EQ(walker_.Walk().shared, 5u);
}

TEST_F(IncrementalWalkTest, AStackThatIsCutSharesNothing) {
  for (int i = 0; i < 100; ++i) Call({1});
  for (int i = 0; i < 3; ++i) {
    const WalkResult result = walker_.Walk(50);
    EXPECT_EQ(result.count, 50u);
    EXPECT_EQ(result.end, StackEnd::kTruncated);
  }
  EXPECT_EQ(walker_.Walk(200).shared, 0u);
  EXPECT_EQ(walker_.Walk(200).shared, 101u);
}

TEST_F(IncrementalWalkTest, DeeperStacksThanItHoldsAreWalkedWithoutIt) {
  for (std::size_t i = 0; i + 2 < internal::WalkMemo::kMaxFrames; ++i) Call({1});
  walker_.Walk();
  EXPECT_EQ(walker_.Walk().shared, internal::WalkMemo::kMaxFrames - 1);
  Call({1});
  EXPECT_EQ(walker_.Walk().shared,
            internal::WalkMemo::kMaxFrames - 2);  // the former leaf is a caller now
  Call({1});
  EXPECT_EQ(walker_.Walk().count, internal::WalkMemo::kMaxFrames + 1);
  EXPECT_EQ(walker_.Walk().count, internal::WalkMemo::kMaxFrames + 1);
  machine_.Return();
  machine_.Return();
  walker_.Walk();
  EXPECT_EQ(walker_.Walk().shared, internal::WalkMemo::kMaxFrames - 1);
}

// What the collector finishes, the memo knows nothing of: the next walk may share nothing with it.
TEST(IncrementalWalk, AWalkAfterOneThatWasPendingSharesNothing) {
  Machine machine({{UnwindRule::Stop(), false},
                   {UnwindRule::Frame(UnwindRule::Kind::kFromSp, 2, 1, 0), false}});
  for (int i = 0; i < 10; ++i) machine.Call(1, 100);
  const auto memo = std::make_unique<internal::WalkMemo>();
  std::array<Address, 16> output{};
  std::size_t steps_left = 4;
  const auto walk = [&] {
    return internal::WalkFrames(machine.registers(), machine.memory(), *memo, 1, output,
                                [&](FrameState<X86_64Registers>& state) noexcept {
                                  return steps_left-- == 0 ? StepResult::kPending
                                                           : machine.Step(state);
                                });
  };
  const WalkResult pending = walk();
  EXPECT_TRUE(pending.is_pending);
  EXPECT_EQ(pending.count, 5u);
  EXPECT_EQ(pending.stop.sp, machine.registers().sp + 4 * 16);
  steps_left = 100;
  const WalkResult whole = walk();
  EXPECT_FALSE(whole.is_pending);
  EXPECT_EQ(whole.count, 11u);
  EXPECT_EQ(whole.shared, 0u);
  EXPECT_EQ(walk().shared, 11u);
}

}  // namespace
}  // namespace strobe::testing
