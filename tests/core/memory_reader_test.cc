#include "strobe/core/memory_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "strobe/core/memory_windows.h"
#include "strobe/platform/native.h"
#include "strobe/testing/fakes/fake_memory.h"

namespace strobe {
namespace {

// The contract, for each reader that there is: `start` is the first byte of `expected`.
void CheckReader(const AnyMemoryReader& read, Address start,
                 const std::vector<std::uint8_t>& expected) {
  std::vector<std::uint8_t> copy(expected.size());
  EXPECT_EQ(read(start, copy), copy.size());
  EXPECT_EQ(copy, expected);
  EXPECT_EQ(read(start + 1, std::span(copy).first(1)), 1u);
  EXPECT_EQ(copy[0], expected[1]);
  EXPECT_EQ(read(start, {}), 0u);
  for (const Address nothing : {Address{8}, ~Address{0} - 4095, ~Address{0}})
    EXPECT_EQ(read(nothing, copy), 0u) << std::hex << nothing;
}

TEST(MemoryReader, EachKeepsTheContract) {
  std::vector<std::uint8_t> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  constexpr Address kStart = 0x7000;
  testing::FakeMemory fake;
  fake.Map(kStart, bytes);
  CheckReader(std::ref(fake), kStart, bytes);
  CheckReader(MemoryWindows(std::ref(fake)), kStart, bytes);

  const auto own = reinterpret_cast<Address>(bytes.data());
  CheckReader(&NativePlatform::ReadMemory, own, bytes);
  CheckReader(MemoryWindows(&NativePlatform::ReadMemory), own, bytes);
  std::array<std::uint8_t, 1> probe{};
  if (NativePlatform::ReadStack(own, probe) == 0) GTEST_SKIP() << "a sandbox forbids the call";
  CheckReader(&NativePlatform::ReadStack, own, bytes);
}

TEST(MemoryReader, NothingIsReadByTheOneThatReadsNothing) {
  std::array<std::uint8_t, 8> bytes{};
  EXPECT_EQ(ReadNothing(reinterpret_cast<Address>(bytes.data()), bytes), 0u);
}

}  // namespace
}  // namespace strobe
