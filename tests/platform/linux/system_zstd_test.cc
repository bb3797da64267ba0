#include "../../../src/platform/linux/files/system_zstd.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "../../../src/platform/linux/files/system_library.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// What zstd makes of "What is compressed, ", three times.
constexpr std::uint8_t kZstdText[] = {0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68, 0xD5, 0x00, 0x00, 0xA0,
                                      0x57, 0x68, 0x61, 0x74, 0x20, 0x69, 0x73, 0x20, 0x63, 0x6F,
                                      0x6D, 0x70, 0x72, 0x65, 0x73, 0x73, 0x65, 0x64, 0x2C, 0x20,
                                      0x01, 0x00, 0x5E, 0x39, 0x99, 0xF3, 0x8C, 0xC4, 0xEB};
constexpr std::size_t kZstdTextBytes = 60;
// Of 100,000 zeros.
constexpr std::uint8_t kZstdZeros[] = {0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x58, 0x55, 0x00,
                                       0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x9B, 0x86,
                                       0x39, 0xC0, 0x02, 0xDB, 0x23, 0x4E, 0xF3};
constexpr std::size_t kZstdZerosBytes = 100'000;

class InflateZstdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FindFunction<void()>("libzstd.so.1", "ZSTD_decompress") == nullptr)
      GTEST_SKIP() << "no libzstd on this machine";
  }
};

TEST_F(InflateZstdTest, GivesTheContent) {
  const std::vector<std::byte> content = InflateZstd(std::as_bytes(std::span(kZstdText)), 1 << 20);
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  EXPECT_EQ(text, "What is compressed, What is compressed, What is compressed, ");
}

TEST_F(InflateZstdTest, ContentMayBeMuchLonger) {
  const std::vector<std::byte> content = InflateZstd(std::as_bytes(std::span(kZstdZeros)), 1 << 20);
  EXPECT_EQ(content, std::vector<std::byte>(kZstdZerosBytes));
}

TEST_F(InflateZstdTest, IsLimited) {
  EXPECT_EQ(InflateZstd(std::as_bytes(std::span(kZstdText)), kZstdTextBytes).size(),
            kZstdTextBytes);
  EXPECT_TRUE(InflateZstd(std::as_bytes(std::span(kZstdText)), kZstdTextBytes - 1).empty());
  EXPECT_EQ(InflateZstd(std::as_bytes(std::span(kZstdZeros)), kZstdZerosBytes).size(),
            kZstdZerosBytes);
  EXPECT_TRUE(InflateZstd(std::as_bytes(std::span(kZstdZeros)), kZstdZerosBytes - 1).empty());
  EXPECT_TRUE(InflateZstd(std::as_bytes(std::span(kZstdText)), 0).empty());
}

TEST_F(InflateZstdTest, DamagedContentIsRefused) {
  const std::span<const std::byte> whole = std::as_bytes(std::span(kZstdText));
  const std::vector<std::byte> content = InflateZstd(whole, 1 << 20);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_TRUE(InflateZstd(whole.first(bytes), 1 << 20).empty()) << bytes;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> damaged(whole.begin(), whole.end());
    damaged[at] ^= std::byte{0x10};
    // Not each bit of a head says anything of the content.
    const std::vector<std::byte> found = InflateZstd(damaged, 1 << 20);
    EXPECT_TRUE(found.empty() || found == content) << at;
  }
}

}  // namespace
}  // namespace strobe::internal
