#include "../../src/unwind/decoded/kept_rows.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "code_reader.h"

namespace strobe::internal {
namespace {

using testing::CodeReader;
using testing::kCodeStart;

// The rule at `offset` of `compiled`: what it counts from.
SpecialRule::Base BaseAt(const CompiledCfi& compiled, std::uint32_t offset) {
  UnwindRule rule;
  for (const UnwindRow& row : compiled.rows) {
    if (row.offset <= offset) rule = row.rule;
  }
  return compiled.specials[rule.special_number()].cfa_base;
}

// Rows of `code` that count from the register with DWARF's number `number`, up to `end`.
CompiledCfi RowsFrom(std::uint8_t number, std::uint32_t end) {
  CompiledCfi compiled;
  compiled.specials.resize(2);
  compiled.specials[1].cfa = SpecialRule::Cfa::kOffset;
  compiled.specials[1].cfa_base = SpecialRule::Base::kOther;
  compiled.specials[1].cfa_other = number;
  compiled.rows = {{0, UnwindRule::Special(1)}, {end, UnwindRule::Unknown()}};
  return compiled;
}

TEST(KeptRows, AreKeptAtCallsOfCodeThatLeavesTheirRegisterAlone) {
  // nop; call 1f; nop; call *%rdx; nop; call 2f; ret; 1: dec %rcx; ret; 2: mul %rcx; ret
  const AnyMemoryReader read =
      CodeReader({0x90, 0xE8, 0x0A, 0,    0,    0,    0x90, 0xFF, 0xD2, 0x90, 0xE8, 0x05,
                  0,    0,    0,    0xC3, 0x48, 0xFF, 0xC9, 0xC3, 0x48, 0xF7, 0xE1, 0xC3});
  CompiledCfi by_rax = RowsFrom(0, 16);
  KeepRegistersAtCalls(kCodeStart, read, by_rax);
  EXPECT_EQ(BaseAt(by_rax, 0), SpecialRule::Base::kOther);
  EXPECT_EQ(BaseAt(by_rax, 1), SpecialRule::Base::kKept) << "the first call";
  EXPECT_EQ(BaseAt(by_rax, 5), SpecialRule::Base::kKept) << "up to its end";
  EXPECT_EQ(BaseAt(by_rax, 6), SpecialRule::Base::kOther);
  EXPECT_EQ(BaseAt(by_rax, 8), SpecialRule::Base::kOther) << "of anything";
  EXPECT_EQ(BaseAt(by_rax, 12), SpecialRule::Base::kOther) << "that writes rax";
  EXPECT_EQ(by_rax.rows.back().rule, UnwindRule::Unknown());
  // rcx is DWARF's register 2, and rdx 1.
  CompiledCfi by_rcx = RowsFrom(2, 16);
  KeepRegistersAtCalls(kCodeStart, read, by_rcx);
  EXPECT_EQ(BaseAt(by_rcx, 1), SpecialRule::Base::kOther);
  EXPECT_EQ(BaseAt(by_rcx, 12), SpecialRule::Base::kKept);
}

}  // namespace
}  // namespace strobe::internal
