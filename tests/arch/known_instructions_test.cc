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

TEST(FindCoroutineEnds, AreWhereTheFirstFunctionReturnsTo) {
  const Code finish = {0x48, 0x31, 0xFF, 0xE8, 1, 2, 3, 4, 0xF4};  // xor rdi, rdi; call; hlt
  const Code goexit = {0x90, 0xE8, 1, 2, 3, 4, 0x90, 0xCC};        // nop; call; nop; int3
  const Code text = Join({Code(3), finish, goexit});
  EXPECT_EQ(FindCoroutineEnds(text), (std::vector<std::size_t>{3, 3 + finish.size() + 1}));
  EXPECT_TRUE(FindCoroutineEnds(std::span(text).first(3 + finish.size() - 1)).empty());
  EXPECT_TRUE(FindCoroutineEnds(Code{0xE8, 1, 2, 3, 4}).empty()) << "any other call";
  EXPECT_TRUE(FindCoroutineEnds({}).empty());
}

}  // namespace
}  // namespace strobe::internal
