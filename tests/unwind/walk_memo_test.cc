#include "strobe/unwind/walk_memo.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

namespace strobe::testing {
namespace {

constexpr std::size_t kStackWords = 16384;
constexpr Address kBase = 0x7f0000000000;
constexpr Address kTop = kBase + kStackWords * 8;
constexpr Address kText = 0x10000;
constexpr Address kFunctionBytes = 0x100;

// A function as the walk sees it: code that begins at kText + number * kFunctionBytes, left by one
// rule all over.
struct Function {
  UnwindRule rule;
  bool is_special = false;  // left as the rule says, but the step does not tell
};

// Runs functions on a stack of its own, as their rules say.
class Machine {
 public:
  explicit Machine(std::vector<Function> functions)
      : functions_(std::move(functions)), words_(kStackWords) {
    state_ = {.pc = PcOf(0, 1), .sp = kTop, .fp = 0};
  }

  void Call(std::size_t function, std::uint64_t random) {
    const UnwindRule rule = functions_[function].rule;
    const Address cfa = state_.sp;
    returns_.push_back(state_);
    Word(cfa - Address{rule.ra_words()} * 8) = state_.pc;
    if (rule.fp_words() != 0) {
      Word(cfa - Address{rule.fp_words()} * 8) = state_.fp;
      state_.fp = random;
    }
    state_.sp = cfa - Address{rule.cfa_words()} * 8;
    if (rule.kind() == UnwindRule::Kind::kFromFp) {
      state_.fp = state_.sp;
      state_.sp -= random % 5 * 8;
    }
    state_.pc = PcOf(function, 1 + random % 200);
  }
  void Return() {
    state_ = returns_.back();
    returns_.pop_back();
  }
  // Goes on within the function.
  void Run(std::uint64_t random) {
    state_.pc = (state_.pc & ~(kFunctionBytes - 1)) + 1 + random % 200;
  }

  Address& Word(Address address) { return words_[static_cast<std::size_t>((address - kBase) / 8)]; }
  [[nodiscard]] std::size_t depth() const { return returns_.size(); }
  [[nodiscard]] const X86_64Registers& registers() const { return state_; }
  [[nodiscard]] CopiedStackMemory memory() const {
    return {kBase, std::as_bytes(std::span(words_))};
  }

  StepResult Step(FrameState<X86_64Registers>& state) const {
    const Address number = (state.code_address() - kText) / kFunctionBytes;
    if (number >= functions_.size()) return StepResult::kUnknown;
    const Function& function = functions_[number];
    const UnwindRule rule = function.rule;
    if (!function.is_special) state.rule = rule;
    if (rule.kind() == UnwindRule::Kind::kStop) return StepResult::kEnd;
    const Address base =
        rule.kind() == UnwindRule::Kind::kFromSp ? state.registers.sp : state.registers.fp;
    const Address cfa = base + Address{rule.cfa_words()} * 8;
    Address fp = state.registers.fp;
    Address pc = 0;
    if (cfa <= state.registers.sp || !memory().ReadWord(cfa - Address{rule.ra_words()} * 8, pc))
      return StepResult::kBroken;
    if (rule.fp_words() != 0 && !memory().ReadWord(cfa - Address{rule.fp_words()} * 8, fp))
      return StepResult::kBroken;
    return internal::Return(state, pc, cfa, fp, false);
  }

 private:
  static Address PcOf(std::size_t function, Address offset) {
    return kText + function * kFunctionBytes + offset;
  }

  std::vector<Function> functions_;
  std::vector<Address> words_;
  std::vector<X86_64Registers> returns_;
  X86_64Registers state_;
};

std::vector<Function> RandomFunctions(std::mt19937_64& random, std::size_t count) {
  std::vector<Function> functions{{UnwindRule::Stop(), false}};
  while (functions.size() < count) {
    const auto words = static_cast<std::uint32_t>(2 + random() % 5);
    switch (random() % 8) {
      case 0:
      case 1:
        functions.push_back({UnwindRule::Frame(UnwindRule::Kind::kFromFp, 2, 1, 2), false});
        break;
      case 2:
      case 3:
        functions.push_back({UnwindRule::Frame(UnwindRule::Kind::kFromSp, words, 1, words), false});
        break;
      case 4:
        functions.push_back({UnwindRule::Frame(UnwindRule::Kind::kFromSp, words, 1, 2), true});
        break;
      default:
        functions.push_back({UnwindRule::Frame(UnwindRule::Kind::kFromSp, words, 1, 0), false});
        break;
    }
  }
  return functions;
}

// Walks of one thread, each with the memo and without.
class Walker {
 public:
  explicit Walker(const Machine& machine) : machine_(machine) {}

  // The frames that the two walks came to; both are checked to be equal.
  WalkResult Walk(std::size_t max_frames = 2048, std::uint64_t source = 1) {
    const auto step = [this](FrameState<X86_64Registers>& state) noexcept {
      return machine_.Step(state);
    };
    std::vector<Address> plain(max_frames);
    const WalkResult expected = internal::WalkFrames(machine_.registers(), plain, step);
    plain.resize(expected.count);
    std::vector<Address> fresh(max_frames);
    const CopiedStackMemory memory = machine_.memory();
    const WalkResult result =
        internal::WalkFrames(machine_.registers(), memory, *memo_, source, fresh, step);
    fresh.resize(result.count);
    EXPECT_LE(result.shared, last_.size());
    if (result.shared <= last_.size())
      fresh.insert(fresh.end(), last_.end() - static_cast<std::ptrdiff_t>(result.shared),
                   last_.end());
    EXPECT_EQ(fresh, plain);
    EXPECT_EQ(result.end, expected.end);
    last_ = std::move(fresh);
    return result;
  }
  internal::WalkMemo& memo() { return *memo_; }

 private:
  const Machine& machine_;
  std::unique_ptr<internal::WalkMemo> memo_ = std::make_unique<internal::WalkMemo>();
  std::vector<Address> last_;
};

TEST(WalkMemoTest, FindsTheSameStacksAsAWalkWithoutIt) {
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
        broken = &machine.Word(machine.registers().sp +
                               random() % ((kTop - machine.registers().sp) / 8 + 1) / 2 * 8);
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

class WalkMemoStackTest : public ::testing::Test {
 protected:
  static std::vector<Function> Functions() {
    return {
        {UnwindRule::Stop(), false},
        {UnwindRule::Frame(UnwindRule::Kind::kFromSp, 3, 1, 0), false},  // 1: leaves fp alone
        {UnwindRule::Frame(UnwindRule::Kind::kFromSp, 3, 1, 2),
         false},  // 2: uses fp for its own purposes
        {UnwindRule::Frame(UnwindRule::Kind::kFromFp, 2, 1, 2), false}};  // 3: has a frame pointer
  }
  void Call(std::initializer_list<std::size_t> functions) {
    for (const std::size_t function : functions) machine_.Call(function, 0x1234567);
  }
  Machine machine_{Functions()};
  Walker walker_{machine_};
};

TEST_F(WalkMemoStackTest, AnUnchangedStackIsSharedWhole) {
  Call({1, 2, 3, 1, 2});
  EXPECT_EQ(walker_.Walk().shared, 0u);
  const WalkResult again = walker_.Walk();
  EXPECT_EQ(again.count, 0u);
  EXPECT_EQ(again.shared, 6u);
}

TEST_F(WalkMemoStackTest, OnlyTheFramesThatChangedAreWritten) {
  Call({1, 2, 3, 1, 2});
  walker_.Walk();
  machine_.Return();
  Call({1, 1});
  const WalkResult result = walker_.Walk();
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.shared, 5u);
}

TEST_F(WalkMemoStackTest, WhatLiesBeyondTheOneFrameThatDiffersIsShared) {
  constexpr std::size_t kCalls = 23;
  std::vector<Address> pc_addresses;
  for (std::size_t i = 0; i < kCalls; ++i) {
    pc_addresses.push_back(machine_.registers().sp - 8);
    Call({i % 7 == 5 ? 3 : 1 + i % 2});
  }
  for (std::size_t callers = 0; callers < kCalls; ++callers) {
    walker_.Walk();
    EXPECT_EQ(walker_.Walk().shared, kCalls + 1);
    ++machine_.Word(pc_addresses[callers]);
    EXPECT_EQ(walker_.Walk().shared, callers);
    --machine_.Word(pc_addresses[callers]);
  }
}

TEST_F(WalkMemoStackTest, AStackThatSharedOnlyItsRootIsSharedWholeTheNextTime) {
  Call({1, 2, 3});
  walker_.Walk();
  for (int i = 0; i < 3; ++i) machine_.Return();
  Call({3, 1, 2, 1});
  EXPECT_EQ(walker_.Walk().shared, 1u);
  EXPECT_EQ(walker_.Walk().shared, 5u);
}

TEST_F(WalkMemoStackTest, AFramePointerThatNobodyNeedsMayDiffer) {
  Call({1, 1, 2});
  walker_.Walk();
  machine_.Return();
  machine_.Call(2, 0x1234567 + 2000);  // another value in fp; what was saved is the same
  EXPECT_EQ(walker_.Walk().shared, 4u);
}

TEST_F(WalkMemoStackTest, AFramePointerThatACallerNeedsMayNot) {
  Call({3, 1, 2});
  const Address saved = machine_.registers().sp + 8;
  walker_.Walk();
  EXPECT_EQ(walker_.Walk().shared, 4u);
  machine_.Word(saved) += 16;
  EXPECT_LT(walker_.Walk().shared, 4u);
}

TEST_F(WalkMemoStackTest, OtherRulesShareNothing) {
  Call({1, 2, 3});
  walker_.Walk();
  EXPECT_EQ(walker_.Walk(2048, 2).shared, 0u);
  EXPECT_EQ(walker_.Walk(2048, 2).shared, 4u);
}

TEST_F(WalkMemoStackTest, NothingIsSharedAfterAClear) {
  Call({1, 2, 3});
  walker_.Walk();
  walker_.memo().Clear();
  EXPECT_EQ(walker_.Walk().shared, 0u);
}

TEST_F(WalkMemoStackTest, AStackThatIsCutSharesNothing) {
  for (int i = 0; i < 100; ++i) Call({1});
  for (int i = 0; i < 3; ++i) {
    const WalkResult result = walker_.Walk(50);
    EXPECT_EQ(result.count, 50u);
    EXPECT_EQ(result.end, StackEnd::kTruncated);
  }
  EXPECT_EQ(walker_.Walk(200).shared, 0u);
  EXPECT_EQ(walker_.Walk(200).shared, 101u);
}

TEST_F(WalkMemoStackTest, DeeperStacksThanItHoldsAreWalkedWithoutIt) {
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
TEST(WalkMemo, AWalkAfterOneThatWasPendingSharesNothing) {
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
