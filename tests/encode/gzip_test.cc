#include "../../src/encode/gzip.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::internal {
namespace {

// Bytes that no compressor makes shorter.
std::string Incompressible(std::size_t size) {
  std::string bytes;
  std::uint64_t state = 1;
  while (bytes.size() < size) {
    state = state * 6364136223846793005 + 1442695040888963407;
    bytes.push_back(static_cast<char>(state >> 56));
  }
  return bytes;
}

TEST(GzipTest, OneMemberGivesTheBytesBack) {
  for (const std::string& bytes : {std::string(), std::string("a"), std::string("\0\n\xFF\0", 4),
                                   std::string(1'000'000, 'x'), Incompressible(300'000)}) {
    const absl::StatusOr<std::string> member = Gzip(bytes);
    ASSERT_TRUE(member.ok()) << member.status();
    EXPECT_EQ(testing::Gunzip(*member), bytes) << bytes.size();
  }
}

TEST(GzipTest, RepeatedBytesBecomeFew) {
  EXPECT_LT(Gzip(std::string(1'000'000, 'x'))->size(), 10'000U);
  EXPECT_LT(Gzip(Incompressible(300'000))->size(), 301'000U) << "and other bytes hardly more";
}

TEST(GzipTest, EqualBytesGiveEqualMembers) {
  const std::string member = *Gzip("profile");
  EXPECT_EQ(*Gzip("profile"), member);
  EXPECT_EQ(member.substr(0, 4), std::string("\x1F\x8B\x08\x00", 4)) << "no name in the header";
  EXPECT_EQ(member.substr(4, 4), std::string(4, '\0')) << "no time";
  EXPECT_EQ(member[9], '\xFF') << "no operating system";
}

}  // namespace
}  // namespace strobe::internal
