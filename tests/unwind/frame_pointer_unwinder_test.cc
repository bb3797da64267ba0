#include "strobe/unwind/frame_pointer_unwinder.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/testing/unwinder_conformance.h"
#include "walk_trace.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(FramePointers, UnwinderConformance, FramePointerUnwinder);

namespace {

template <class Registers>
Trace WalkFp(const Registers& registers, const FakeStack& stack, std::size_t limit = 16,
             const UnwindModules* modules = nullptr) {
  return TraceOf(FramePointerUnwinder(modules), registers, stack, limit);
}

// sp, saved fp of the caller at +16, the caller's at +40.
FakeStack TwoFrames() {
  //                  0x7000  0x7008  0x7010  0x7018    0x7020  0x7028  0x7030
  return FakeStack(kBase, {0xAAAA, 0xBBBB, 0x7028, 0x401111, 0xCCCC, 0, 0x402222});
}

TEST(FramePointers, FollowsTheChainToItsEndOnX86_64) {
  const Trace trace = WalkFp(X86_64Registers{kPc, kBase, 0x7010}, TwoFrames());
  EXPECT_EQ(trace, (Trace{{kPc, 0x401110, 0x402221}, StackEnd::kComplete}));
}

TEST(FramePointers, FollowsTheChainToItsEndOnAarch64) {
  FakeStack stack = TwoFrames();
  stack.words()[3] = 0x401110;
  stack.words()[6] = 0x402220;
  const Trace trace = WalkFp(Aarch64Registers{kPc, kBase, 0x7010, 0x999990}, stack);
  EXPECT_EQ(trace, (Trace{{kPc, 0x40110F, 0x40221F}, StackEnd::kComplete}))
      << "lr is dead once the frame stands";
}

TEST(FramePointers, StripsTheSignatureOfAarch64ReturnAddresses) {
  FakeStack stack(kBase, {0, 0x003A000000401110});
  EXPECT_EQ(WalkFp(Aarch64Registers{kPc, kBase, kBase, 0}, stack),
            (Trace{{kPc, 0x40110F}, StackEnd::kComplete}));
}

TEST(FramePointers, FrameMayStandAtTheStackPointer) {
  EXPECT_EQ(WalkFp(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {0, 0x401111})),
            (Trace{{kPc, 0x401110}, StackEnd::kComplete}));
}

TEST(FramePointers, EndsOfAChain) {
  // glibc leaves argc in main's rbp.
  EXPECT_EQ(WalkFp(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {1, 0x401111})).end,
            StackEnd::kComplete);
  const Trace not_a_frame{{kPc}, StackEnd::kNoUnwindInfo};
  EXPECT_EQ(WalkFp(X86_64Registers{kPc, kBase, 0}, FakeStack(kBase, {1, 2})), not_a_frame)
      << "the code may use the register otherwise";
  EXPECT_EQ(WalkFp(Aarch64Registers{kPc, kBase, 0, 0}, FakeStack(kBase, {1, 2})), not_a_frame);
  EXPECT_EQ(
      WalkFp(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {0x7010, 0x401111, 0x7020, 0})),
      (Trace{{kPc, 0x401110}, StackEnd::kComplete}));
}

TEST(FramePointers, BrokenChainsStopWhereTheyBreak) {
  const Trace broken{{kPc, 0x401110}, StackEnd::kBroken};
  for (const Address fp :
       {Address{kBase}, Address{kBase + 8}, Address{0x6FF8}, Address{0x7011}, Address{0x7018},
        Address{0x7020}, Address{0x7FFFFFFFFFFF}, ~Address{0}, ~Address{7}}) {
    EXPECT_EQ(
        WalkFp(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {fp, 0x401111, 0, 0x402222})),
        broken)
        << std::hex << fp;
  }
}

TEST(FramePointers, ReturnAddressThatNoCodeCanHaveIsBroken) {
  for (const Address caller : {Address{1}, Address{4095}, Address{1} << 47, ~Address{0}}) {
    EXPECT_EQ(WalkFp(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {0, caller})),
              (Trace{{kPc}, StackEnd::kBroken}))
        << caller;
  }
  EXPECT_EQ(WalkFp(Aarch64Registers{kPc, kBase, kBase, 0}, FakeStack(kBase, {0, 0x401111})),
            (Trace{{kPc}, StackEnd::kBroken}))
      << "an aarch64 instruction is aligned";
}

TEST(FramePointers, LimitIsExact) {
  constexpr std::size_t kFrames = 512;
  std::vector<Address> words;
  for (std::size_t i = 0; i < kFrames - 1; ++i) {
    words.push_back(i + 2 == kFrames ? 0 : kBase + 16 * (i + 1));
    words.push_back(0x500001 + i);
  }
  FakeStack stack(kBase, words);
  const X86_64Registers registers{kPc, kBase, kBase};
  EXPECT_EQ(WalkFp(registers, stack, kFrames).frames.size(), kFrames);
  EXPECT_EQ(WalkFp(registers, stack, kFrames).end, StackEnd::kComplete);
  EXPECT_EQ(WalkFp(registers, stack, kFrames - 1).end, StackEnd::kTruncated);
  EXPECT_EQ(WalkFp(registers, stack, kFrames - 1).frames.size(), kFrames - 1);
  EXPECT_EQ(WalkFp(registers, stack, kFrames - 1).frames.back(), 0x500000 + kFrames - 3);
}

// A function's code: its entry, behind `push rbp`, behind `mov rbp, rsp`, at its `ret`; a signal's
// trampoline; a leaf of aarch64, which has its caller in lr.
constexpr Address kEntry = kText;
constexpr Address kPushed = kText + 0x10;
constexpr Address kSet = kText + 0x20;
constexpr Address kReturn = kText + 0x30;
constexpr Address kSignalTrampoline = kText + 0x40;
constexpr Address kAarch64Leaf = kText + 0x50;

const UnwindModules& TabledModules() {
  using Base = SpecialRule::Base;
  using Where = SpecialRule::Where;
  static const UnwindModules modules(
      {{kText, kText + 0x1000,
        std::make_shared<UnwindTable>(
            0x1000,
            std::vector<UnwindRow>{{kEntry - kText, FromSp(1)},
                                   {kPushed - kText, FromSp(2, 1, 2)},
                                   {kSet - kText, FromFp(2, 1, 2)},
                                   {kReturn - kText, FromSp(1)},
                                   {kSignalTrampoline - kText, UnwindRule::Special(1)},
                                   {kAarch64Leaf - kText, FromSp(0, 0)},
                                   {kAarch64Leaf + 0x10 - kText, UnwindRule::Unknown()}},
            std::vector<SpecialRule>{
                SpecialRule(),
                {.cfa = SpecialRule::Cfa::kMemory,
                 .cfa_base = Base::kSp,
                 .cfa_offset = 16,
                 .ra = {.where = Where::kMemory, .base = Base::kSp, .offset = 24},
                 .fp = {.where = Where::kMemory, .base = Base::kSp, .offset = 8},
                 .is_signal_frame = true}})}});
  return modules;
}

// The caller's frame stands at 0x70F0; below it are `words`, from kBase on.
FakeStack AboveWords(std::vector<Address> words) {
  words.resize(30, 0xDDDD);
  words.insert(words.end(), {0, 0x402222});
  return FakeStack(kBase, words);
}

// Where the frame pointer is the caller's still, or again, the chain alone would pass over
// 0x401111.
TEST(FramePointers, TheInnermostFrameIsUnwoundByItsTable) {
  const auto expect_caller = [](const X86_64Registers& registers, const FakeStack& stack) {
    EXPECT_EQ(WalkFp(registers, stack, 16, &TabledModules()),
              (Trace{{registers.pc, 0x401110, 0x402221}, StackEnd::kComplete}));
    EXPECT_EQ(WalkFp(registers, stack, 2, &TabledModules()),
              (Trace{{registers.pc, 0x401110}, StackEnd::kTruncated}));
    EXPECT_EQ(WalkFp(registers, stack, 1, &TabledModules()),
              (Trace{{registers.pc}, StackEnd::kTruncated}));
  };
  expect_caller({kEntry, kBase, 0x70F0}, AboveWords({0x401111}));
  expect_caller({kPushed, kBase, 0x70F0}, AboveWords({0x70F0, 0x401111}));
  expect_caller({kSet, kBase, kBase}, AboveWords({0x70F0, 0x401111}));
  expect_caller({kReturn, kBase, 0x70F0}, AboveWords({0x401111}));
  EXPECT_EQ(WalkFp(X86_64Registers{kEntry, kBase, 0x70F0}, AboveWords({0x401111})).frames,
            (std::vector<Address>{kEntry, 0x402221}))
      << "without a table the caller cannot be known";
}

TEST(FramePointers, AnInnermostFrameWithoutATableIsUnwoundByItsFramePointer) {
  for (const Address pc : {kAarch64Leaf + 0x20, kPc}) {
    EXPECT_EQ(WalkFp(X86_64Registers{pc, kBase, 0x7010}, TwoFrames(), 16, &TabledModules()),
              (Trace{{pc, 0x401110, 0x402221}, StackEnd::kComplete}));
  }
}

TEST(FramePointers, WhatASignalInterruptedIsUnwoundByItsTable) {
  // A handler's frame, which returns to the trampoline; fp, sp and pc of the interrupted function.
  const FakeStack stack = AboveWords({0xAAAA, 0x70F0, 0x7030, kEntry, 0, 0, 0x401111});
  EXPECT_EQ(WalkFp(X86_64Registers{kSignalTrampoline, kBase, 0x70F0}, stack, 16, &TabledModules()),
            (Trace{{kSignalTrampoline, kEntry, 0x401110, 0x402221}, StackEnd::kComplete}));
}

TEST(FramePointers, LinkRegisterHoldsTheCallerOfALeafOnAarch64) {
  const FakeStack stack(kBase, {1, 2, 0, 0x402220});
  EXPECT_EQ(WalkFp(Aarch64Registers{kAarch64Leaf, kBase, 0x7010, 0x0055000000401110}, stack, 16,
                   &TabledModules()),
            (Trace{{kAarch64Leaf, 0x40110F, 0x40221F}, StackEnd::kComplete}));
}

TEST(FramePointers, FirstCallerOfAnUnreadableStackIsBroken) {
  EXPECT_EQ(WalkFp(X86_64Registers{kEntry, kBase, 0}, FakeStack(kBase, {}), 16, &TabledModules()),
            (Trace{{kEntry}, StackEnd::kBroken}));
}

TEST(FramePointers, AWalkThatMissesATableGoesOnWhereItStopped) {
  const UnwindModules not_built({{kText, kText + 0x1000, nullptr}});
  const FakeStack stack = AboveWords({0x401111});
  const X86_64Registers registers{kEntry, kBase, 0x70F0};
  std::array<Address, 16> output{};
  const WalkResult pending = FramePointerUnwinder(&not_built).Unwind(registers, stack, output);
  EXPECT_TRUE(pending.is_pending);
  EXPECT_EQ(pending.count, 1u);
  EXPECT_EQ(pending.stop.pc, kEntry);
  EXPECT_TRUE(pending.stop.is_exact);
  const FrameState<X86_64Registers> from{.registers = registers, .innermost = &registers};
  const WalkResult whole = FramePointerUnwinder(&TabledModules()).Unwind(from, stack, output);
  EXPECT_FALSE(whole.is_pending);
  EXPECT_EQ(whole.count, 3u);
  EXPECT_EQ(whole.end, StackEnd::kComplete);
}

// A real stack: functions that each know their own return address. The last call must not be a tail
// call, or its frame is gone.
struct RealWalk {
  std::vector<Address> expected;  // return addresses - 1, leaf first
  std::array<Address, 600> found{};
  WalkResult result;
  Address top = 0;
};

[[gnu::noinline]] int Recurse(int depth, RealWalk& walk) {
  walk.expected.push_back(
      reinterpret_cast<Address>(__builtin_extract_return_addr(__builtin_return_address(0))) - 1);
  if (depth > 0) {
    volatile int below = Recurse(depth - 1, walk);
    return below + 1;
  }
  NativeRegisters registers;
  registers.pc = 0x1000;
  registers.fp = reinterpret_cast<Address>(__builtin_frame_address(0));
  registers.sp = registers.fp;
  walk.result =
      FramePointerUnwinder().Unwind(registers, LiveStackMemory(registers.sp, walk.top), walk.found);
  return 0;
}

TEST(FramePointers, RealRecursionGivesTheRealReturnAddresses) {
  for (const int depth : {0, 1, 40, 400}) {
    RealWalk walk;
    std::thread([&] {
      walk.top = reinterpret_cast<Address>(__builtin_frame_address(0)) + 16;
      walk.expected.reserve(600);
      volatile int sum = Recurse(depth, walk);
      static_cast<void>(sum);
    }).join();
    std::vector<Address> expected(walk.expected.rbegin(), walk.expected.rend());
    ASSERT_GE(walk.result.count, expected.size() + 1) << depth;
    EXPECT_EQ(walk.found[0], 0x1000u);
    EXPECT_EQ(
        std::vector<Address>(walk.found.begin() + 1,
                             walk.found.begin() + 1 + static_cast<std::ptrdiff_t>(expected.size())),
        expected);
  }
}

}  // namespace
}  // namespace strobe::testing
