#include "strobe/symbolize/image_reader.h"

#include <array>
#include <cstdint>

#include "../loaded_image.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

// This module of the program: its code, as the program has it in memory.
TEST(ImageReader, ReadsWhatTheProcessHad) {
  const auto address = reinterpret_cast<Address>(&ReadImageOf);
  const Module module = testing::ModuleAt(address);
  std::array<std::uint8_t, 64> in_memory{};
  std::array<std::uint8_t, 64> in_file{};
  ASSERT_EQ(NativePlatform::ReadMemory(address, in_memory), in_memory.size());
  EXPECT_EQ(ReadImageOf(module, NativePlatform::Files())(address, in_file), in_file.size());
  EXPECT_EQ(in_file, in_memory);
  EXPECT_EQ(ReadImageOf(module, NativePlatform::Files())(module.load_bias - 4096, in_file), 0U)
      << "before the image";
}

TEST(ImageReader, ReadsNothingOfAnotherFile) {
  const auto address = reinterpret_cast<Address>(&ReadImageOf);
  std::array<std::uint8_t, 16> bytes{};
  Module other = testing::ModuleAt(address);
  other.build_id += "00";
  EXPECT_EQ(ReadImageOf(other, NativePlatform::Files())(address, bytes), 0U);
  other.path = "/nowhere";
  EXPECT_EQ(ReadImageOf(other, NativePlatform::Files())(address, bytes), 0U);
}

}  // namespace
}  // namespace strobe
