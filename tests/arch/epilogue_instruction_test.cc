#include "../../src/arch/epilogue_instruction.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strobe::internal {
namespace {

using Code = std::vector<std::uint8_t>;
using Kind = EpilogueInstruction::Kind;

EpilogueInstruction Decode(const Code& code) { return DecodeEpilogueInstruction(code, 0); }

TEST(EpilogueInstruction, PopsARegister) {
  EXPECT_EQ(Decode({0x5D}).kind, Kind::kPop);
  EXPECT_EQ(Decode({0x5D}).register_number, X86_64Encoding::kRbp);
  EXPECT_EQ(Decode({0x41, 0x5F}).register_number, 15u) << "pop r15";
  EXPECT_EQ(Decode({0x41, 0x5F}).bytes, 2u);
  EXPECT_EQ(Decode({0xC9}).kind, Kind::kLeave);
}

TEST(EpilogueInstruction, ReleasesStackFromARegister) {
  const EpilogueInstruction add = Decode({0x48, 0x83, 0xC4, 0x28});  // add rsp, 0x28
  EXPECT_EQ(add.kind, Kind::kRelease);
  EXPECT_EQ(add.register_number, X86_64Encoding::kRsp);
  EXPECT_EQ(add.offset, 0x28);
  const EpilogueInstruction lea = Decode({0x48, 0x8D, 0x65, 0xF0});  // lea rsp, [rbp - 16]
  EXPECT_EQ(lea.kind, Kind::kRelease);
  EXPECT_EQ(lea.register_number, X86_64Encoding::kRbp);
  EXPECT_EQ(lea.offset, -16);
}

TEST(EpilogueInstruction, LeavesTheFunctionOrJumpsWithin) {
  EXPECT_EQ(Decode({0xC3}).kind, Kind::kExit);
  EXPECT_EQ(Decode({0xEB, 0x7F}).kind, Kind::kExit) << "beyond the function";
  const EpilogueInstruction within = DecodeEpilogueInstruction(Code{0x90, 0x90, 0xEB, 0xFC}, 2);
  EXPECT_EQ(within.kind, Kind::kJumpWithin);
  EXPECT_EQ(within.offset, 0);
}

TEST(EpilogueInstruction, IsNoOtherAndNoneThatIsCutOff) {
  EXPECT_EQ(Decode({0x50}).kind, Kind::kOther) << "push rax";
  const Code add = {0x48, 0x81, 0xC4, 0x28, 0, 0, 0};
  EXPECT_EQ(Decode(add).kind, Kind::kRelease);
  for (std::size_t bytes = 0; bytes < add.size(); ++bytes)
    EXPECT_EQ(Decode(Code(add.begin(), add.begin() + static_cast<std::ptrdiff_t>(bytes))).kind,
              Kind::kOther);
}

}  // namespace
}  // namespace strobe::internal
