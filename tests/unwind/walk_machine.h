// A machine whose stack the tests of incremental walks walk, and a walker that compares each such
// walk with a walk without a memo.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/unwind/incremental_walk.h"

namespace strobe {
namespace STROBE_HIDDEN testing {

// A function as the walk sees it: code of Machine::kFunctionBytes, left by one rule all over.
struct Function {
  UnwindRule rule;
  bool is_special = false;  // left as the rule says, but the step does not tell
};

// Runs functions on a stack of its own, as their rules say.
class Machine {
 public:
  static constexpr std::size_t kStackWords = 16384;
  static constexpr Address kBase = 0x7f0000000000;
  static constexpr Address kTop = kBase + kStackWords * 8;
  // Function `number` begins at kText + number * kFunctionBytes.
  static constexpr Address kText = 0x10000;
  static constexpr Address kFunctionBytes = 0x100;

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

inline std::vector<Function> RandomFunctions(std::mt19937_64& random, std::size_t count) {
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

class WalkMachineTest : public ::testing::Test {
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

}  // namespace testing
}  // namespace strobe
