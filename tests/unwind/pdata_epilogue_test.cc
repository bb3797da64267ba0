#include "../../src/unwind/pdata/pdata_epilogue.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <optional>

#include "support/bytes.h"

namespace strobe::testing {
namespace {

using internal::Epilogue;
using internal::kMaxEpilogueInstructions;
using internal::MatchEpilogue;

// Instructions of x86-64.
const Bytes kReleaseStack = {0x48, 0x83, 0xC4, 0x28};  // add rsp, 0x28
const Bytes kReleaseFrame = {0x48, 0x8D, 0x65, 0x10};  // lea rsp, [rbp + 0x10]
const Bytes kPopBase = {0x5D};                         // pop rbp
const Bytes kPopSpecial = {0x5B};                      // pop rbx
const Bytes kReturnByte = {0xC3};
const Bytes kLeaveFrame = {0xC9};
const Bytes kNop = {0x90};

TEST(MatchEpilogueTest, KnowsTheFrameBeforeEachStep) {
  const Bytes code = Join({kNop, kReleaseStack, kPopSpecial, kPopBase, kReturnByte});
  const std::optional<Epilogue> epilogue = MatchEpilogue(code, 1);
  ASSERT_TRUE(epilogue);
  ASSERT_EQ(epilogue->count, 4u);
  EXPECT_EQ(epilogue->end, code.size());
  EXPECT_EQ(epilogue->steps[0].position, 1u);
  EXPECT_EQ(epilogue->steps[0].frame.base, X86_64Encoding::kRsp);
  EXPECT_EQ(epilogue->steps[0].frame.offset, 0x38);
  EXPECT_EQ(epilogue->steps[0].frame.special, 0x28);
  EXPECT_EQ(epilogue->steps[0].frame.fp, 0x30);
  EXPECT_EQ(epilogue->steps[1].position, 5u);
  EXPECT_EQ(epilogue->steps[1].frame.offset, 16);
  EXPECT_EQ(epilogue->steps[2].frame.offset, 8);
  EXPECT_FALSE(epilogue->steps[2].frame.special) << "it has its caller's value again";
  EXPECT_EQ(epilogue->steps[2].frame.fp, 0);
  EXPECT_EQ(epilogue->steps[3].frame.offset, 0);
  EXPECT_FALSE(epilogue->steps[3].frame.fp);
}

TEST(MatchEpilogueTest, TheStackPointerMayComeFromTheFrameRegister) {
  const Bytes code = Join({kReleaseFrame, kPopBase, kReturnByte});
  const std::optional<Epilogue> epilogue = MatchEpilogue(code, 0);
  ASSERT_TRUE(epilogue);
  EXPECT_EQ(epilogue->steps[0].frame.base, X86_64Encoding::kRbp);
  EXPECT_EQ(epilogue->steps[0].frame.offset, 0x18);
  EXPECT_EQ(epilogue->steps[0].frame.fp, 0x10);
  EXPECT_EQ(epilogue->steps[1].frame.base, X86_64Encoding::kRsp);
  const std::optional<Epilogue> leave = MatchEpilogue(Join({kLeaveFrame, kReturnByte}), 0);
  ASSERT_TRUE(leave);
  EXPECT_EQ(leave->steps[0].frame.base, X86_64Encoding::kRbp);
  EXPECT_EQ(leave->steps[0].frame.offset, 8);
  EXPECT_EQ(leave->steps[0].frame.fp, 0);
}

TEST(MatchEpilogueTest, MayBeginAtAnyPop) {
  const Bytes code = Join({kReleaseStack, kPopSpecial, kPopBase, kReturnByte});
  const std::optional<Epilogue> rest = MatchEpilogue(code, 5);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->count, 2u);
  EXPECT_EQ(rest->steps[0].position, 5u);
}

TEST(MatchEpilogueTest, MayGoOnElsewhereInTheFunction) {
  const Bytes jump = {0xEB, 0x02};  // behind two nops
  const Bytes code = Join({kReleaseStack, jump, kNop, kNop, kPopBase, kReturnByte});
  const std::optional<Epilogue> epilogue = MatchEpilogue(code, 0);
  ASSERT_TRUE(epilogue);
  EXPECT_EQ(epilogue->count, 2u) << "the rest is an epilogue of its own";
  EXPECT_EQ(epilogue->end, 6u);
  EXPECT_EQ(epilogue->steps[0].frame.offset, 0x30);
  EXPECT_EQ(epilogue->steps[1].frame.offset, 8);
}

TEST(MatchEpilogueTest, OtherCodeIsNone) {
  const Bytes codes[] = {
      {},
      kReturnByte,
      Join({kNop, kReturnByte}),
      kReleaseStack,
      Join({kReleaseStack, kPopBase}),
      Join({kReleaseStack, kPopBase, {0x31, 0xC0}, kReturnByte}),
      Join({kReleaseStack, kPopBase, kReleaseStack, kReturnByte}),
      Join({kReleaseStack, {0xEB, 0xFE}, kReturnByte}),  // a jump to itself
  };
  for (std::size_t i = 0; i < std::size(codes); ++i) EXPECT_FALSE(MatchEpilogue(codes[i], 0)) << i;
  EXPECT_FALSE(MatchEpilogue(kPopBase, 1)) << "behind the function";
  EXPECT_FALSE(MatchEpilogue(kPopBase, 100));
}

TEST(MatchEpilogueTest, IsBounded) {
  const auto pops = [](std::size_t count) {
    return Join({Bytes(count, kPopBase[0]), kReturnByte});
  };
  const std::optional<Epilogue> longest = MatchEpilogue(pops(kMaxEpilogueInstructions - 1), 0);
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->count, kMaxEpilogueInstructions);
  EXPECT_FALSE(MatchEpilogue(pops(kMaxEpilogueInstructions), 0));
}

TEST(MatchEpilogueTest, TheCallerSeesTheLastPopOfARegister) {
  const Bytes code = Join({kPopBase, kPopBase, kReturnByte});
  const std::optional<Epilogue> epilogue = MatchEpilogue(code, 0);
  ASSERT_TRUE(epilogue);
  EXPECT_EQ(epilogue->steps[0].frame.fp, 8);
}

}  // namespace
}  // namespace strobe::testing
