#include "../../src/arch/known_instructions.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace strobe::internal {
namespace {

using Code = std::vector<std::uint8_t>;

Code Join(std::initializer_list<Code> parts) {
  Code all;
  for (const Code& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(FindAarch64SignalReturns, LooksAtWholeInstructionsOnly) {
  const Code instructions = {0x68, 0x11, 0x80, 0xD2, 0x01, 0x00, 0x00, 0xD4};
  const Code text = Join({instructions, Code(4), instructions, Code(2), instructions});
  EXPECT_EQ(FindAarch64SignalReturns(text), (std::vector<std::size_t>{0, 12}));
  EXPECT_TRUE(FindAarch64SignalReturns(std::span(text).first(7)).empty()) << "cut off";
  EXPECT_TRUE(FindAarch64SignalReturns({}).empty());
}

TEST(FindStackProbes, NeedsBothEnds) {
  const Code begin = {0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x48, 0x8D, 0x4C, 0x24, 0x18};
  const Code end = {0x58, 0x59, 0xC3};
  const auto found = FindStackProbes(Join({Code(8), begin, Code(4), end}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, 8u);
  EXPECT_EQ(found[0].pop, 8 + begin.size() + 4);
  EXPECT_TRUE(FindStackProbes(begin).empty());
  EXPECT_TRUE(FindStackProbes(Join({begin, Code(64), end})).empty()) << "of another function";
  EXPECT_TRUE(FindStackProbes({}).empty());
}

TEST(FindStackEnds, AreWhereTheFirstFunctionReturnsTo) {
  const Code finish = {0x48, 0x31, 0xFF, 0xE8, 1, 2, 3, 4, 0xF4};  // xor rdi, rdi; call; hlt
  const Code goexit = {0x90, 0xE8, 1, 2, 3, 4, 0x90, 0xCC};        // nop; call; nop; int3
  const Code text = Join({Code(3), finish, goexit});
  EXPECT_EQ(FindStackEnds(text), (std::vector<std::size_t>{3, 3 + finish.size() + 1}));
  EXPECT_TRUE(FindStackEnds(std::span(text).first(3 + finish.size() - 1)).empty());
  EXPECT_TRUE(FindStackEnds(Code{0xE8, 1, 2, 3, 4}).empty()) << "any other call";
  EXPECT_TRUE(FindStackEnds({}).empty());
}

TEST(FindStackEnds, AreWhereMuslCallsThreadsAndTheProgram) {
  const Code start = {0x48, 0x31, 0xED, 0x48, 0x89, 0xE7, 0x48, 0x8D, 0x35, 1, 2,
                      3,    4,    0x48, 0x83, 0xE4, 0xF0, 0xE8, 5,    6,    7, 8};
  const Code clone = {0x31, 0xED, 0x5F, 0x41, 0xFF, 0xD1, 0x89,
                      0xC7, 0x31, 0xC0, 0xB0, 0x3C, 0x0F, 0x05};
  EXPECT_EQ(
      FindStackEnds(Join({clone, start, clone})),
      (std::vector<std::size_t>{6, clone.size() + start.size(), clone.size() + start.size() + 6}));
  for (const Code& whole : {start, clone}) {
    EXPECT_EQ(FindStackEnds(whole).size(), 1u);
    EXPECT_TRUE(FindStackEnds(std::span(whole).first(whole.size() - 1)).empty());
    EXPECT_TRUE(FindStackEnds(std::span(whole).last(whole.size() - 1)).empty());
  }
}

TEST(FindStackEnds, AreWhereGlibcsLoaderCallsItselfAndTheConstructors) {
  const Code start = {0x48, 0x89, 0xE7, 0xE8, 1, 2, 3, 4, 0x49, 0x89, 0xC4};
  const Code init = {0x31, 0xED, 0xE8, 1, 2, 3, 4, 0x48, 0x8D, 0x15};
  EXPECT_EQ(FindStackEnds(Join({start, Code(5), init})),
            (std::vector<std::size_t>{8, start.size() + 5 + 7}));
  for (const Code& whole : {start, init}) {
    EXPECT_TRUE(FindStackEnds(std::span(whole).first(whole.size() - 1)).empty());
    EXPECT_TRUE(FindStackEnds(std::span(whole).last(whole.size() - 1)).empty());
  }
}

TEST(KnownInstructions, BeginPrograms) {
  const std::vector<std::uint8_t> loader = {0x48, 0x89, 0xE7, 0xE8};
  const std::vector<std::uint8_t> glibc = {0xF3, 0x0F, 0x1E, 0xFA, 0x31, 0xED, 0x49, 0x89, 0xD1};
  const std::vector<std::uint8_t> other = {0x31, 0xED, 0xC3};
  EXPECT_TRUE(BeginsProgram(loader));
  EXPECT_TRUE(BeginsProgram(glibc));
  EXPECT_FALSE(BeginsProgram(other));
  EXPECT_FALSE(BeginsProgram({}));
}

}  // namespace
}  // namespace strobe::internal
