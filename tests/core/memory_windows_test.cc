#include "strobe/core/memory_windows.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

constexpr std::size_t kWindow = MemoryWindows::kWindowBytes;

// Memory from `start` to `limit`, each byte of which says where it lies, and a count of how often
// it is asked.
class MemoryWindowsTest : public ::testing::Test {
 protected:
  static std::uint8_t ByteAt(Address address) {
    return static_cast<std::uint8_t>(address * 0x9E3779B97F4A7C15 >> 56);
  }

  std::size_t ReadHere(Address address, std::span<std::uint8_t> bytes) {
    ++reads_;
    std::size_t count = 0;
    while (count < bytes.size() && address + count >= start_ && address + count < limit_ &&
           address + count != gap_) {
      bytes[count] = ByteAt(address + count);
      ++count;
    }
    return count;
  }

  // How many bytes could be read; each must be the right one.
  std::size_t Read(Address address, std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    const std::size_t got = windows_(address, bytes);
    for (std::size_t i = 0; i < got; ++i)
      EXPECT_EQ(bytes[i], ByteAt(address + i)) << std::hex << address + i;
    return got;
  }

  Address start_ = 4 * kWindow;
  Address limit_ = 40 * kWindow;
  Address gap_ = 0;
  int reads_ = 0;
  MemoryWindows windows_{
      [this](Address address, std::span<std::uint8_t> bytes) { return ReadHere(address, bytes); }};
};

TEST_F(MemoryWindowsTest, NeighboursAreReadAtOnce) {
  for (Address at = start_; at < start_ + 3 * kWindow; at += 8) ASSERT_EQ(Read(at, 8), 8u);
  EXPECT_EQ(reads_, 3);
  EXPECT_FALSE(windows_.has_failed());
}

TEST_F(MemoryWindowsTest, PlacesThatAlternateAreReadOnce) {
  for (Address i = 0; i < 1000; ++i) {
    for (std::size_t window = 0; window < MemoryWindows::kMaxWindows; ++window)
      ASSERT_EQ(Read(start_ + 2 * window * kWindow + i * 60, 12), 12u);
  }
  EXPECT_EQ(reads_, static_cast<int>(MemoryWindows::kMaxWindows));
}

TEST_F(MemoryWindowsTest, AReadMayCrossWindows) {
  EXPECT_EQ(Read(start_ + kWindow - 5, 11), 11u);
  EXPECT_EQ(Read(start_ + 7, 3 * kWindow), 3 * kWindow);
  EXPECT_EQ(reads_, 4);
}

TEST_F(MemoryWindowsTest, AReadEndsWhereTheMemoryDoes) {
  limit_ = start_ + 1000;
  EXPECT_EQ(Read(start_ + 990, 100), 10u);
  EXPECT_EQ(Read(start_ + 999, 1), 1u);
  EXPECT_FALSE(windows_.has_failed());
  EXPECT_EQ(Read(start_ + 1000, 1), 0u);
  EXPECT_EQ(reads_, 1) << "it is known where it ends";
  EXPECT_TRUE(windows_.has_failed());
  limit_ = start_ + 2 * kWindow;
  EXPECT_EQ(Read(limit_ - 3, 10), 3u);
}

TEST_F(MemoryWindowsTest, MemoryMayBeginInsideAWindow) {
  start_ += 100;
  EXPECT_EQ(Read(start_, 50), 50u);
  EXPECT_EQ(Read(start_ - 1, 50), 0u);
  EXPECT_EQ(Read(start_ + kWindow - 200, 200), 200u);
}

TEST_F(MemoryWindowsTest, BehindAGapThereIsMore) {
  gap_ = start_ + 500;
  EXPECT_EQ(Read(gap_ - 4, 16), 4u);
  EXPECT_EQ(Read(gap_, 16), 0u);
  EXPECT_EQ(Read(gap_ + 1, kWindow), kWindow);
}

TEST_F(MemoryWindowsTest, NothingIsReadForNothing) {
  EXPECT_EQ(Read(start_, 0), 0u);
  EXPECT_FALSE(windows_.has_failed());
  EXPECT_EQ(reads_, 0);
}

TEST_F(MemoryWindowsTest, TheSpaceMayEnd) {
  start_ = ~Address{0} - 99;
  limit_ = ~Address{0};
  EXPECT_EQ(Read(~Address{0} - 10, 10), 10u);
  EXPECT_EQ(Read(~Address{0} - 10, 20), 10u);
}

}  // namespace
}  // namespace strobe
