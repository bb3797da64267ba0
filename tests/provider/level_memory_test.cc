#include "strobe/provider/level_memory.h"

#include <array>
#include <cstddef>
#include <span>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

std::array<std::byte, 8> memory;
std::span<std::byte> moved_to;
int moves = 0;

TEST(LevelMemory, IsToldToWhatKeepsLevels) {
  EXPECT_TRUE(LevelMemory::Shared().empty());
  LevelMemory::Share([] { return std::span<std::byte>(memory); });
  EXPECT_EQ(LevelMemory::Shared().data(), memory.data());
  LevelMemory::Tell([](std::span<std::byte> to) {
    moved_to = to;
    ++moves;
  });
  EXPECT_EQ(moves, 0) << "what begins later asks for it";
  LevelMemory::Share([] { return std::span<std::byte>(memory).first(4); });
  EXPECT_EQ(moves, 1);
  EXPECT_EQ(moved_to.size(), 4U);
  EXPECT_TRUE(LevelMemory::Served().empty());
  LevelMemory::Serve([] { return std::span<std::byte>(memory).last(2); });
  EXPECT_EQ(LevelMemory::Served().data(), memory.data() + 6);
}

}  // namespace
}  // namespace strobe::internal
