#include "../../../src/symbolize/pe/pdb_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace strobe::internal {
namespace {

constexpr std::uint32_t kBlockBytes = 4096;
constexpr std::uint32_t kBlocks = 3;

class PdbFile : public ::testing::Test {
 protected:
  PdbFile() {
    std::memcpy(bytes_.data(), "Microsoft C/C++ MSF 7.00\r\n\x1A\x44S\0\0", 32);
    Put(32, kBlockBytes);
    Put(36, 1);  // the block of what is free
    Put(40, kBlocks);
    Put(44, 100);  // the directory's bytes
    Put(52, 2);    // the block that lists the directory's
  }
  void Put(std::size_t at, std::uint32_t value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  [[nodiscard]] bool IsWhole() const {
    return IsWholePdb(SpanSource(std::as_bytes(std::span(bytes_))));
  }

  std::vector<char> bytes_ = std::vector<char>(std::size_t{kBlockBytes} * kBlocks);
};

TEST_F(PdbFile, IsWhole) { EXPECT_TRUE(IsWhole()); }

TEST_F(PdbFile, IsWholeWithMoreBehindIt) {
  bytes_.resize(bytes_.size() + 1);
  EXPECT_TRUE(IsWhole());
}

TEST_F(PdbFile, IsNotWholeWhereverItIsCutShort) {
  while (!bytes_.empty()) {
    bytes_.resize(bytes_.size() > 100 ? bytes_.size() - 97 : bytes_.size() - 1);
    EXPECT_FALSE(IsWhole()) << bytes_.size();
  }
}

TEST_F(PdbFile, OfAnotherFormatIsNot) {
  bytes_[24] = '?';
  EXPECT_FALSE(IsWhole());
}

TEST_F(PdbFile, WithBlocksOfNoSizeIsNot) {
  for (const std::uint32_t block_bytes : {0u, 1u, 256u, 4095u, 131072u, 0xFFFFFFFFu}) {
    Put(32, block_bytes);
    EXPECT_FALSE(IsWhole()) << block_bytes;
  }
}

TEST_F(PdbFile, WithADirectoryOutsideIsNot) {
  Put(52, kBlocks);
  EXPECT_FALSE(IsWhole());
}

}  // namespace
}  // namespace strobe::internal
