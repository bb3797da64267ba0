#include "strobe/unwind/frame_pointer_unwinder.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "strobe/testing/fake_stack.h"
#include "strobe/testing/unwinder_conformance.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(FramePointers, UnwinderConformance, FramePointerUnwinder);

namespace {

using ::strobe::internal::CallerInLinkRegister;
using ::strobe::internal::FirstFrameOf;

constexpr Address kBase = 0x7000;
constexpr Address kPc = 0x400000;

struct Trace {
  std::vector<Address> frames;
  StackEnd end = StackEnd::kComplete;
  friend bool operator==(const Trace&, const Trace&) = default;
};

void PrintTo(const Trace& trace, std::ostream* os) {
  *os << "{" << ::testing::PrintToString(trace.frames) << ", end " << static_cast<int>(trace.end)
      << "}";
}

template <class Registers>
Trace Walk(const Registers& registers, const FakeStack& stack, std::size_t limit = 16) {
  std::vector<Address> output(limit);
  const WalkResult result = FramePointerUnwinder().Unwind(registers, stack, output);
  output.resize(result.count);
  return {output, result.end};
}

// sp, saved fp of the caller at +16, the caller's at +40.
FakeStack TwoFrames() {
  //                  0x7000  0x7008  0x7010  0x7018    0x7020  0x7028  0x7030
  return FakeStack(kBase, {0xAAAA, 0xBBBB, 0x7028, 0x401111, 0xCCCC, 0, 0x402222});
}

TEST(FramePointers, FollowsTheChainToItsEndOnX86_64) {
  const Trace trace = Walk(X86_64Registers{kPc, kBase, 0x7010}, TwoFrames());
  EXPECT_EQ(trace, (Trace{{kPc, 0x401110, 0x402221}, StackEnd::kComplete}));
}

TEST(FramePointers, FollowsTheChainToItsEndOnAarch64) {
  FakeStack stack = TwoFrames();
  stack.words()[3] = 0x401110;
  stack.words()[6] = 0x402220;
  const Trace trace = Walk(Aarch64Registers{kPc, kBase, 0x7010, 0x999990}, stack);
  EXPECT_EQ(trace, (Trace{{kPc, 0x40110F, 0x40221F}, StackEnd::kComplete}))
      << "lr is dead once the frame stands";
}

TEST(FramePointers, StripsTheSignatureOfAarch64ReturnAddresses) {
  FakeStack stack(kBase, {0, 0x003A000000401110});
  EXPECT_EQ(Walk(Aarch64Registers{kPc, kBase, kBase, 0}, stack),
            (Trace{{kPc, 0x40110F}, StackEnd::kComplete}));
}

TEST(FramePointers, FrameMayStandAtTheStackPointer) {
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {0, 0x401111})),
            (Trace{{kPc, 0x401110}, StackEnd::kComplete}));
}

TEST(FramePointers, EndsOfAChain) {
  // glibc leaves argc in main's rbp.
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {1, 0x401111})).end,
            StackEnd::kComplete);
  const Trace not_a_frame{{kPc}, StackEnd::kNoUnwindInfo};
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0}, FakeStack(kBase, {1, 2})), not_a_frame)
      << "the code may use the register otherwise";
  EXPECT_EQ(Walk(Aarch64Registers{kPc, kBase, 0, 0}, FakeStack(kBase, {1, 2})), not_a_frame);
  EXPECT_EQ(
      Walk(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {0x7010, 0x401111, 0x7020, 0})),
      (Trace{{kPc, 0x401110}, StackEnd::kComplete}));
}

TEST(FramePointers, BrokenChainsStopWhereTheyBreak) {
  const Trace broken{{kPc, 0x401110}, StackEnd::kBroken};
  for (const Address fp :
       {Address{kBase}, Address{kBase + 8}, Address{0x6FF8}, Address{0x7011}, Address{0x7018},
        Address{0x7020}, Address{0x7FFFFFFFFFFF}, ~Address{0}, ~Address{7}}) {
    EXPECT_EQ(
        Walk(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {fp, 0x401111, 0, 0x402222})),
        broken)
        << std::hex << fp;
  }
}

TEST(FramePointers, ReturnAddressThatNoCodeCanHaveIsBroken) {
  for (const Address caller : {Address{1}, Address{4095}, Address{1} << 47, ~Address{0}}) {
    EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, kBase}, FakeStack(kBase, {0, caller})),
              (Trace{{kPc}, StackEnd::kBroken}))
        << caller;
  }
  EXPECT_EQ(Walk(Aarch64Registers{kPc, kBase, kBase, 0}, FakeStack(kBase, {0, 0x401111})),
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
  EXPECT_EQ(Walk(registers, stack, kFrames).frames.size(), kFrames);
  EXPECT_EQ(Walk(registers, stack, kFrames).end, StackEnd::kComplete);
  EXPECT_EQ(Walk(registers, stack, kFrames - 1).end, StackEnd::kTruncated);
  EXPECT_EQ(Walk(registers, stack, kFrames - 1).frames.size(), kFrames - 1);
  EXPECT_EQ(Walk(registers, stack, kFrames - 1).frames.back(), 0x500000 + kFrames - 3);
}

// At each of these instructions the frame pointer is still the caller's, so the chain alone would
// pass over 0x401111.
struct FirstInstruction {
  const char* name;
  std::vector<std::uint8_t> before;
  std::vector<std::uint8_t> after;
  std::vector<Address> words;
};

class X86_64FirstInstruction : public ::testing::TestWithParam<FirstInstruction> {};

TEST_P(X86_64FirstInstruction, FindsTheFirstCaller) {
  // The words end at the caller's frame, which stands at 0x7100 - 16.
  std::vector<Address> words = GetParam().words;
  words.resize(30, 0xDDDD);
  words.insert(words.end(), {0, 0x402222});
  FakeStack stack(kBase, words);
  stack.SetCode(kPc, GetParam().before, GetParam().after);
  const Trace expected{{kPc, 0x401110, 0x402221}, StackEnd::kComplete};
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0x70F0}, stack), expected);
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0x70F0}, stack, 1),
            (Trace{{kPc}, StackEnd::kTruncated}));
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0x70F0}, stack, 2),
            (Trace{{kPc, 0x401110}, StackEnd::kTruncated}));
  stack.SetCode(kPc, {}, {0x90});
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0x70F0}, stack).frames,
            (std::vector<Address>{kPc, 0x402221}))
      << "without the code the caller cannot be known";
}

INSTANTIATE_TEST_SUITE_P(
    , X86_64FirstInstruction,
    ::testing::Values(
        FirstInstruction{"push", {}, {0x55, 0x48, 0x89, 0xE5}, {0x401111}},
        FirstInstruction{"push_load_form", {}, {0x55, 0x48, 0x8B, 0xEC}, {0x401111}},
        FirstInstruction{"endbr", {}, {0xF3, 0x0F, 0x1E, 0xFA, 0x55, 0x48, 0x89, 0xE5}, {0x401111}},
        FirstInstruction{"mov", {0x55}, {0x48, 0x89, 0xE5}, {0x70F0, 0x401111}},
        FirstInstruction{"ret", {0x5D}, {0xC3}, {0x401111}},
        FirstInstruction{"ret_imm", {}, {0xC2, 0x08, 0x00}, {0x401111}},
        FirstInstruction{"rep_ret", {}, {0xF3, 0xC3}, {0x401111}},
        FirstInstruction{"pop_ret", {}, {0x5D, 0xC3}, {0x70F0, 0x401111}},
        FirstInstruction{"pops", {}, {0x5B, 0x41, 0x5C, 0x5D, 0xC3}, {1, 2, 0x70F0, 0x401111}},
        FirstInstruction{
            "add_imm8", {}, {0x48, 0x83, 0xC4, 0x18, 0x5B, 0xC3}, {1, 2, 3, 4, 0x401111}},
        FirstInstruction{"add_imm32",
                         {},
                         {0x48, 0x81, 0xC4, 0x88, 0, 0, 0, 0xC3},
                         [] {
                           std::vector<Address> words(17, 7);
                           words.push_back(0x401111);
                           return words;
                         }()},
        FirstInstruction{
            "plt", {}, {0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF, 0x25, 1, 2, 3, 4}, {0x401111}},
        FirstInstruction{"plt_plain", {}, {0xFF, 0x25, 1, 2, 3, 4}, {0x401111}}),
    [](const auto& info) { return info.param.name; });

TEST(FramePointers, CodeThatLeavesADoubtIsNotBelieved) {
  // Ends of the window, a push without its mov, pop rsp, an odd adjustment, a push whose saved word
  // is not the frame pointer.
  const std::vector<std::vector<std::uint8_t>> doubtful = {{},
                                                           {0x55},
                                                           {0x55, 0x90},
                                                           {0x5C, 0xC3},
                                                           {0x5B, 0x41},
                                                           {0x48, 0x83, 0xC4, 0x0C, 0xC3},
                                                           {0x48, 0x83, 0xC4, 0xF8, 0xC3},
                                                           {0x48, 0x83},
                                                           {0x5B, 0x5B, 0x5B}};
  for (const auto& code : doubtful) EXPECT_FALSE(FirstFrameOf({{}, code}).known);
  FakeStack stack(kBase, {0x1234, 0x401111, 0, 0x402222});
  stack.SetCode(kPc, {0x55}, {0x48, 0x89, 0xE5});
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0x7010}, stack).frames,
            (std::vector<Address>{kPc, 0x402221}));
}

TEST(FramePointers, FirstCallerOfAnUnreadableStackIsBroken) {
  FakeStack stack(kBase, {});
  stack.SetCode(kPc, {}, {0xC3});
  EXPECT_EQ(Walk(X86_64Registers{kPc, kBase, 0}, stack), (Trace{{kPc}, StackEnd::kBroken}));
}

TEST(FramePointers, LinkRegisterIsUsedWhereItHoldsTheCaller) {
  const std::vector<std::vector<std::uint8_t>> entries = {
      {0xFD, 0x7B, 0xBF, 0xA9},                          // stp x29, x30, [sp, #-16]!
      {0xFD, 0x7B, 0x02, 0xA9},                          // stp x29, x30, [sp, #32]
      {0x3F, 0x23, 0x03, 0xD5},                          // paciasp
      {0x5F, 0x24, 0x03, 0xD5},                          // bti c
      {0xFF, 0xC3, 0x00, 0xD1, 0xFD, 0x7B, 0x02, 0xA9},  // sub sp, sp, #48; stp x29, x30, [sp, #32]
      {0xC0, 0x03, 0x5F, 0xD6},                          // ret
      {0xFF, 0x0B, 0x5F, 0xD6},                          // retaa
      {0xBF, 0x23, 0x03, 0xD5, 0xC0, 0x03, 0x5F, 0xD6},  // autiasp; ret
  };
  for (const auto& code : entries) {
    FakeStack stack(kBase, {1, 2, 0, 0x402220});
    stack.SetCode(kPc, {}, code);
    EXPECT_EQ(Walk(Aarch64Registers{kPc, kBase, 0x7010, 0x0055000000401110}, stack),
              (Trace{{kPc, 0x40110F, 0x40221F}, StackEnd::kComplete}))
        << std::hex << static_cast<int>(code[0]);
  }
  const std::vector<std::uint8_t> store = {0xFD, 0x7B, 0xBE, 0xA9};
  const std::vector<std::uint8_t> set = {0xFD, 0x03, 0x00, 0x91};
  EXPECT_TRUE(CallerInLinkRegister({store, set})) << "stored, x29 not yet set";
  EXPECT_FALSE(CallerInLinkRegister({{}, set}));
  EXPECT_FALSE(CallerInLinkRegister({store, {}}));
  const std::vector<std::uint8_t> nop = {0x1F, 0x20, 0x03, 0xD5};
  EXPECT_FALSE(CallerInLinkRegister({store, nop}));
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
