#include "strobe/testing/fakes/fake_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace strobe::testing {
namespace {

TEST(FakeMemory, HasWhatIsMapped) {
  FakeMemory memory;
  memory.Map(0x1000, {1, 2, 3});
  memory.Map(0x1003, {4});
  std::array<std::uint8_t, 4> bytes{};
  EXPECT_EQ(memory(0x1001, bytes), 2u) << "up to the end of the piece";
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 4>{2, 3, 0, 0}));
  EXPECT_EQ(memory(0x1003, bytes), 1u);
  EXPECT_EQ(memory(0x0FFF, bytes), 0u);
  EXPECT_EQ(memory(0x1004, bytes), 0u);
  EXPECT_EQ(memory.reads(), (std::vector<Address>{0x1001, 0x1003, 0x0FFF, 0x1004}));
  memory.Unmap(0x1003);
  EXPECT_EQ(memory(0x1003, bytes), 0u);
}

}  // namespace
}  // namespace strobe::testing
