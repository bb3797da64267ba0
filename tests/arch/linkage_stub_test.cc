#include "../../src/arch/linkage_stub.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strobe::internal {
namespace {

TEST(LinkageStub, OfAarch64LoadsItsSlot) {
  // adrp x16, +0x20000; ldr x17, [x16, #8]; add x16, x16, #8; br x17, with the head of the table
  // before and a signed stub after it.
  const std::vector<std::uint32_t> code = {
      0xA9BF7BF0, 0xF00000F0, 0xF947FE11, 0x913FE210, 0xD61F0220, 0xD503201F,
      0xD503201F, 0xD503201F, 0x90000110, 0xF9400611, 0x91002210, 0xD61F0220,  //
      0xD503245F, 0x90FFFFF0, 0xF9400A11, 0x91004210, 0xD503219F, 0xD61F0220};
  const std::vector<LinkageStub> stubs =
      FindAarch64LinkageStubs(0x12C0, std::as_bytes(std::span(code)));
  ASSERT_EQ(stubs.size(), 3u);
  EXPECT_EQ(stubs[1].address, 0x12E0u);
  EXPECT_EQ(stubs[1].end, 0x12F0u);
  EXPECT_EQ(stubs[1].slot, 0x21008u);
  EXPECT_EQ(stubs[2].address, 0x12F0u) << "the mark of a branch's target belongs to it";
  EXPECT_EQ(stubs[2].end, 0x1308u);
  EXPECT_EQ(stubs[2].slot, std::uint64_t{0x1000} - 0x4000 + 0x10);
  for (std::size_t bytes = 0; bytes < code.size() * 4; ++bytes) {
    for (const LinkageStub& stub :
         FindAarch64LinkageStubs(0x12C0, std::as_bytes(std::span(code)).first(bytes))) {
      EXPECT_LE(stub.end, 0x12C0 + bytes);
    }
  }
}

TEST(LinkageStub, OfX86_64JumpsThroughItsSlot) {
  // endbr64; bnd jmp *0x2f86(%rip); nopl, then two stubs of eight bytes, the last cut short.
  const std::vector<unsigned char> code = {0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF, 0x25, 0x85, 0x2F,
                                           0,    0,    0x0F, 0x1F, 0x44, 0,    0,    0xFF, 0x25,
                                           0xF0, 0xFF, 0xFF, 0xFF, 0x66, 0x90, 0xFF, 0x25, 1};
  const std::vector<LinkageStub> stubs =
      FindX86LinkageStubs(0x1070, std::as_bytes(std::span(code)));
  ASSERT_EQ(stubs.size(), 2u);
  EXPECT_EQ(stubs[0].address, 0x1070u);
  EXPECT_EQ(stubs[0].end, 0x1080u);
  EXPECT_EQ(stubs[0].slot, 0x107B + 0x2F85u);
  EXPECT_EQ(stubs[1].address, 0x1080u);
  EXPECT_EQ(stubs[1].slot, 0x1086 - 0x10u);
}

// The words that the stubs in `code` have pushed at each offset; -1 where no stub is.
std::vector<int> PushedWords(const std::vector<std::uint8_t>& code) {
  std::vector<int> words;
  const std::vector<StubRow> rows = FindX86StubRows(code);
  for (std::size_t at = 0, row = 0; at < code.size(); ++at) {
    while (row < rows.size() && rows[row].offset <= at) ++row;
    const bool is_stub = row != 0 && rows[row - 1].pushed_words != StubRow::kNoStub;
    words.push_back(is_stub ? static_cast<int>(rows[row - 1].pushed_words) : -1);
  }
  return words;
}
void Append(std::vector<int>& words, int count, int pushed) {
  words.insert(words.end(), static_cast<std::size_t>(count), pushed);
}

TEST(StubRows, OfLldPushAnIndexAndTheHeadAWordMore) {
  // push *(%rip); jmp *(%rip); nopl, then jmp *(%rip); push 0; jmp head.
  const std::vector<std::uint8_t> code = {
      0xFF, 0x35, 1, 2, 0, 0, 0xFF, 0x25, 1, 2, 0, 0,    0x0F, 0x1F, 0x40, 0,  //
      0xFF, 0x25, 1, 2, 0, 0, 0x68, 0,    0, 0, 0, 0xE9, 0xE0, 0xFF, 0xFF, 0xFF};
  std::vector<int> words;
  Append(words, 6, 1);
  Append(words, 6, 2);
  Append(words, 4, -1);
  Append(words, 11, 0);
  Append(words, 5, 1);
  EXPECT_EQ(PushedWords(code), words);
}

TEST(StubRows, OfMoldPassTheIndexInARegister) {
  // endbr64; push %r11; push *(%rip); jmp *(%rip); int3, then endbr64; mov 5, %r11d; jmp *(%rip).
  const std::vector<std::uint8_t> code = {
      0xF3, 0x0F, 0x1E, 0xFA, 0x41, 0x53, 0xFF, 0x35, 1, 2, 0,    0,    0xFF, 0x25, 1, 2,
      0,    0,    0xCC, 0xCC,  //
      0xF3, 0x0F, 0x1E, 0xFA, 0x41, 0xBB, 5,    0,    0, 0, 0xFF, 0x25, 1,    2,    0, 0};
  std::vector<int> words;
  Append(words, 6, 0);
  Append(words, 6, 1);
  Append(words, 6, 2);
  Append(words, 2, -1);
  Append(words, 16, 0);
  EXPECT_EQ(PushedWords(code), words);
}

TEST(StubRows, WithBranchTrackingAreTwoTables) {
  // endbr64; push 3; jmp head; nop, then endbr64; jmp *(%rip); nopw.
  const std::vector<std::uint8_t> code = {
      0xF3, 0x0F, 0x1E, 0xFA, 0x68, 3,    0, 0, 0, 0xE9, 0xD0, 0xFF, 0xFF, 0xFF, 0x66, 0x90,  //
      0xF3, 0x0F, 0x1E, 0xFA, 0xFF, 0x25, 1, 2, 0, 0,    0x66, 0x0F, 0x1F, 0x44, 0,    0};
  std::vector<int> words;
  Append(words, 9, 0);
  Append(words, 5, 1);
  Append(words, 2, -1);
  Append(words, 10, 0);
  Append(words, 6, -1);
  EXPECT_EQ(PushedWords(code), words);
}

TEST(StubRows, OtherCodeHasNone) {
  // jmp *(%rip) at the end of a function; call; ret.
  const std::vector<std::uint8_t> code = {0xFF, 0x25, 1, 2, 0, 0, 0x55, 0xE8, 1, 2, 3, 4, 0xC3};
  EXPECT_TRUE(FindX86StubRows(code).empty());
  EXPECT_TRUE(FindX86StubRows({}).empty());
  for (std::size_t bytes = 0; bytes < code.size(); ++bytes)
    EXPECT_TRUE(FindX86StubRows(std::span(code).first(bytes)).empty()) << bytes;
}

}  // namespace
}  // namespace strobe::internal
