#include "../../src/unwind/pdata/unwind_codes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "strobe/testing/fakes/fake_memory.h"
#include "unwind_info_bytes.h"

namespace strobe::testing {
namespace {

using internal::FrameAt;
using internal::kMaxChainedFunctions;
using internal::kWholePrologue;
using internal::PdataFrame;
using internal::ReadUnwindCodes;
using internal::StateOf;
using internal::UnwindCode;
using internal::UnwindCodes;

constexpr std::uint32_t kInfoAt = 0x4000;

// An entry of .pdata that is continued, or stands for other unwind information.
Bytes RuntimeFunctionOf(std::uint32_t unwind) {
  return Join({Fixed(std::uint32_t{0}), Fixed(std::uint32_t{8}), Fixed(unwind)});
}

class UnwindCodesTest : public ::testing::Test {
 protected:
  // What is read of `info` alone.
  std::optional<UnwindCodes> Read(const Bytes& info) {
    memory_.Map(kInfoAt, info);
    return ReadUnwindCodes(std::ref(memory_), kInfoAt);
  }
  UnwindCodes ReadGood(const Bytes& info) {
    const std::optional<UnwindCodes> codes = Read(info);
    EXPECT_TRUE(codes.has_value());
    return codes.value_or(UnwindCodes());
  }

  FakeMemory memory_;
};

TEST_F(UnwindCodesTest, ReadsCodesAsTheyAreUndone) {
  const UnwindCodes codes = ReadGood(UnwindInfo(
      9, Join({Save(9, kNumberRbx, 5), SetFrame(7), AllocateLarge(5, 300), Push(1, kNumberRbp)}),
      {.frame_register = kNumberRbp, .frame_offset = 2}));
  EXPECT_EQ(codes.prologue_bytes, 9);
  ASSERT_EQ(codes.parts.size(), 1u);
  EXPECT_EQ(codes.parts[0].frame_register, kNumberRbp);
  EXPECT_EQ(codes.parts[0].frame_offset, 32);
  const auto& list = codes.parts[0].codes;
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].kind, UnwindCode::Kind::kSave);
  EXPECT_EQ(list[0].register_number, kNumberRbx);
  EXPECT_EQ(list[0].bytes, 40u);
  EXPECT_EQ(list[1].kind, UnwindCode::Kind::kSetFrame);
  EXPECT_EQ(list[2].kind, UnwindCode::Kind::kAllocate);
  EXPECT_EQ(list[2].bytes, 2400u);
  EXPECT_EQ(list[2].prologue_offset, 5);
  EXPECT_EQ(list[3].kind, UnwindCode::Kind::kPush);
  EXPECT_EQ(list[3].prologue_offset, 1);
}

TEST_F(UnwindCodesTest, SkipsWhatConcernsNoRegisterOfAWalk) {
  const UnwindCodes codes = ReadGood(
      UnwindInfo(8, Join({SaveXmm(8), SaveXmmFar(6), AllocateSmall(4, 8), Push(1, kNumberRbx)})));
  EXPECT_EQ(codes.parts[0].codes.size(), 2u);
}

TEST_F(UnwindCodesTest, EpiloguesOfTheSecondVersionAreNoPartOfThePrologue) {
  const Bytes epilogue = Code(3, 6, 1);
  const UnwindCodes codes =
      ReadGood(UnwindInfo(1, Join({epilogue, epilogue, Push(1, kNumberRbp)}), {.version = 2}));
  ASSERT_EQ(codes.parts[0].codes.size(), 1u);
  EXPECT_EQ(codes.parts[0].codes[0].register_number, kNumberRbp);
}

TEST_F(UnwindCodesTest, EveryBeginningIsRefused) {
  const Bytes function = RuntimeFunctionOf(0x5000);
  memory_.Map(0x5000, UnwindInfo(0, {}));
  const Bytes info = UnwindInfo(6, Join({AllocateHuge(6, 0x100000), Push(1, kNumberRbp)}),
                                {.continued = &function});
  ASSERT_TRUE(Read(info).has_value());
  for (std::size_t bytes = 0; bytes < info.size(); ++bytes)
    EXPECT_FALSE(Read(Bytes(info.begin(), info.begin() + static_cast<int>(bytes)))) << bytes;
}

TEST_F(UnwindCodesTest, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(Read(UnwindInfo(0, {}, {.version = 0})));
  EXPECT_FALSE(Read(UnwindInfo(0, {}, {.version = 3})));
  EXPECT_FALSE(Read(UnwindInfo(1, Code(1, 11, 0)))) << "an operation that does not exist";
  EXPECT_FALSE(Read(UnwindInfo(1, Code(1, 1, 0)))) << "the operand would be another function's";
}

TEST_F(UnwindCodesTest, AFunctionContinuesOthers) {
  const Bytes second = RuntimeFunctionOf(0x5000);
  const Bytes third = RuntimeFunctionOf(0x6000);
  memory_.Map(0x5000, UnwindInfo(4, AllocateSmall(4, 32), {.continued = &third}));
  memory_.Map(0x6000, UnwindInfo(1, Push(1, kNumberRbp)));
  const UnwindCodes codes = ReadGood(UnwindInfo(7, Push(7, kNumberRbx), {.continued = &second}));
  EXPECT_EQ(codes.prologue_bytes, 7) << "its own";
  ASSERT_EQ(codes.parts.size(), 3u);
  const PdataFrame at_start = FrameAt(codes, 0);
  EXPECT_EQ(at_start.offset, 40) << "the prologues of the others are done";
  EXPECT_EQ(at_start.fp, 32);
  EXPECT_FALSE(at_start.special);
  EXPECT_EQ(FrameAt(codes, 7).offset, 48);
  EXPECT_EQ(FrameAt(codes, 7).special, 0);
}

TEST_F(UnwindCodesTest, AnEntryMayStandForAnother) {
  memory_.Map(0x5000, RuntimeFunctionOf(kInfoAt));
  memory_.Map(kInfoAt, UnwindInfo(1, Push(1, kNumberRbp)));
  const std::optional<UnwindCodes> codes = ReadUnwindCodes(std::ref(memory_), 0x5001);
  ASSERT_TRUE(codes);
  EXPECT_EQ(codes->parts[0].codes.size(), 1u);
}

TEST_F(UnwindCodesTest, ChainsEnd) {
  memory_.Map(0x5000, RuntimeFunctionOf(0x5001));
  EXPECT_FALSE(ReadUnwindCodes(std::ref(memory_), 0x5001)) << "it stands for itself";
  const Bytes itself = RuntimeFunctionOf(kInfoAt);
  EXPECT_FALSE(Read(UnwindInfo(0, {}, {.continued = &itself})));
  EXPECT_FALSE(ReadUnwindCodes(std::ref(memory_), 0x9001)) << "it cannot be read";
  // As many as are allowed, and one more.
  for (std::uint32_t i = 0; i <= kMaxChainedFunctions + 1; ++i) {
    const Bytes next = RuntimeFunctionOf(0x10000 + (i + 1) * 0x100);
    const bool is_last = i == kMaxChainedFunctions + 1;
    memory_.Map(0x10000 + i * 0x100, UnwindInfo(0, {}, {.continued = is_last ? nullptr : &next}));
  }
  EXPECT_FALSE(ReadUnwindCodes(std::ref(memory_), 0x10000));
  const std::optional<UnwindCodes> most = ReadUnwindCodes(std::ref(memory_), 0x10100);
  ASSERT_TRUE(most);
  EXPECT_EQ(most->parts.size(), kMaxChainedFunctions + 1);
}

TEST_F(UnwindCodesTest, AFrameFollowsThePrologue) {
  // push rbp; push rbx; sub rsp, 0x28
  const UnwindCodes codes = ReadGood(
      UnwindInfo(6, Join({AllocateSmall(6, 0x28), Push(2, kNumberRbx), Push(1, kNumberRbp)})));
  EXPECT_EQ(FrameAt(codes, 0).offset, 0);
  EXPECT_FALSE(FrameAt(codes, 0).fp);
  EXPECT_EQ(FrameAt(codes, 1).offset, 8);
  EXPECT_EQ(FrameAt(codes, 1).fp, 0);
  EXPECT_EQ(FrameAt(codes, 5).offset, 16) << "the allocation is not done before its end";
  const PdataFrame whole = FrameAt(codes, kWholePrologue);
  EXPECT_EQ(whole.base, X86_64Encoding::kRsp);
  EXPECT_EQ(whole.offset, 0x38);
  EXPECT_EQ(whole.special, 0x28);
  EXPECT_EQ(whole.fp, 0x30);
  EXPECT_FALSE(whole.interrupted);
}

TEST_F(UnwindCodesTest, OffsetsCountFromTheFrameRegisterOnceItIsSet) {
  // push rbp; sub rsp, 0x40; lea rbp, [rsp + 0x20]
  const UnwindCodes codes =
      ReadGood(UnwindInfo(10, Join({SetFrame(10), AllocateSmall(5, 0x40), Push(1, kNumberRbp)}),
                          {.frame_register = kNumberRbp, .frame_offset = 2}));
  EXPECT_EQ(FrameAt(codes, 9).base, X86_64Encoding::kRsp);
  const PdataFrame whole = FrameAt(codes, 10);
  EXPECT_EQ(whole.base, X86_64Encoding::kRbp);
  EXPECT_EQ(whole.offset, 0x28);
  EXPECT_EQ(whole.fp, 0x20);
}

TEST_F(UnwindCodesTest, AMachineFrameEndsTheFrame) {
  for (const bool has_error_code : {false, true}) {
    const UnwindCodes codes =
        ReadGood(UnwindInfo(4, Join({AllocateSmall(4, 16), MachineFrame(has_error_code)})));
    const PdataFrame frame = FrameAt(codes, kWholePrologue);
    EXPECT_TRUE(frame.interrupted);
    EXPECT_EQ(frame.offset, has_error_code ? 24 : 16);
  }
}

TEST(PdataFrameTest, IsAStateOfDwarfsMachine) {
  const internal::CfiState state =
      StateOf({.base = X86_64Encoding::kRbp, .offset = 0x28, .fp = 0x20, .special = -8});
  EXPECT_FALSE(state.cfa_is_expression);
  EXPECT_EQ(state.cfa_register, 6u) << "as DWARF numbers it";
  EXPECT_EQ(state.cfa_offset, 0x30);
  EXPECT_EQ(state.ra.number, -8);
  EXPECT_EQ(state.fp.number, -16);
  EXPECT_EQ(state.special.number, -0x38);
  EXPECT_EQ(StateOf({}).fp.kind, internal::CfiValue::Kind::kSame);
}

}  // namespace
}  // namespace strobe::testing
