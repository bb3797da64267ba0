#include "strobe/runtime/drain/walk_finisher.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "strobe/testing/fakes/archetypes.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"

namespace strobe::internal {
namespace {

// Two functions: the first has a frame of one word, called by the second, which ends the stack.
constexpr Address kFirst = 0x10000;
constexpr Address kSecond = 0x20000;
constexpr Address kBytes = 0x100;

std::shared_ptr<const UnwindTable> TableOf(UnwindRule rule) {
  const std::vector<UnwindRow> rows = {{0, rule}};
  return std::make_shared<const UnwindTable>(static_cast<std::uint32_t>(kBytes), rows,
                                             std::vector<SpecialRule>{SpecialRule()});
}
UnwindModules FunctionTables(bool first, bool second) {
  return UnwindModules(
      {{kFirst, kFirst + kBytes,
        first ? TableOf(UnwindRule::Frame(UnwindRule::Kind::kFromSp, 1, 1, 0)) : nullptr},
       {kSecond, kSecond + kBytes, second ? TableOf(UnwindRule::Stop()) : nullptr}});
}

class WalkFinisherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const SliceHeader header{
        .pc = frames_[0], .sp = 0x7000, .innermost_sp = 0x7000, .base = 0x7000, .is_exact = 1};
    const Address caller = kSecond + 0x10;
    std::memcpy(slice_.data(), &header, sizeof(header));
    std::memcpy(slice_.data() + sizeof(header), &caller, sizeof(caller));
  }
  std::optional<Address> Finish(const UnwindModules& tables, Address gone = 0) {
    return finisher_.Finish(
        &tables, slice_, 16, [gone](Address pc) { return pc == gone; }, stack_);
  }
  [[nodiscard]] std::vector<Address> Frames() const {
    return {stack_.leaf_first.begin(), stack_.leaf_first.end()};
  }

  const std::array<Address, 1> frames_{kFirst + 8};
  alignas(8) std::array<std::byte, sizeof(SliceHeader) + sizeof(Address)> slice_{};
  StackDelta stack_{
      .generation = 1, .end = StackEnd::kNoUnwindInfo, .shared = 0, .leaf_first = frames_};
  WalkFinisher<ChainUnwinder<CfiStep, FramePointerStep>> finisher_;
};

TEST_F(WalkFinisherTest, AMissingTableIsNamedAndTheStackLeftAlone) {
  EXPECT_EQ(Finish(FunctionTables(false, false)), kFirst + 8) << "the very instruction";
  EXPECT_EQ(Finish(FunctionTables(true, false)), kSecond + 0x10 - 1) << "inside of the call";
  EXPECT_EQ(stack_.end, StackEnd::kNoUnwindInfo);
  EXPECT_EQ(stack_.leaf_first.data(), frames_.data());
  EXPECT_EQ(Finish(FunctionTables(true, true)), std::nullopt);
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
  EXPECT_EQ(Frames(), (std::vector<Address>{kFirst + 8, kSecond + 0x10 - 1}));
}

TEST_F(WalkFinisherTest, AWalkEndsAtCodeThatHasGone) {
  EXPECT_EQ(Finish(FunctionTables(true, false), kSecond + 0x10 - 1), std::nullopt);
  EXPECT_EQ(stack_.end, StackEnd::kNoUnwindInfo);
  EXPECT_EQ(Frames(), (std::vector<Address>{kFirst + 8, kSecond + 0x10 - 1}));
}

TEST_F(WalkFinisherTest, AnUnwinderThatCannotGoOnLeavesStacksAsTheyAre) {
  WalkFinisher<testing::ArchetypeUnwinder> finisher;
  EXPECT_EQ(finisher.Finish(
                nullptr, slice_, 16, [](Address) { return false; }, stack_),
            std::nullopt);
  EXPECT_EQ(stack_.leaf_first.data(), frames_.data());
}

}  // namespace
}  // namespace strobe::internal
