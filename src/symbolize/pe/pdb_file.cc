#include "pdb_file.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace strobe::internal {
namespace {

// MSF_HDR of Microsoft's published "microsoft-pdb" sources. The file consists of blocks of one
// size; some blocks list the others.
struct PdbHeader {
  std::array<char, 32> magic;
  std::uint32_t block_bytes;
  std::uint32_t free_blocks;
  std::uint32_t block_count;
  std::uint32_t directory_bytes;
  std::uint32_t reserved;
  std::uint32_t directory_blocks;  // the block that lists the directory's
};
constexpr std::string_view kPdbMagic("Microsoft C/C++ MSF 7.00\r\n\x1A\x44S\0\0\0",
                                     sizeof(PdbHeader::magic));
constexpr std::uint32_t kMinBlockBytes = 512;
constexpr std::uint32_t kMaxBlockBytes = 65536;

}  // namespace

bool IsWholePdb(const ByteSource& source) {
  PdbHeader header{};
  if (!source.ReadAt(0, std::as_writable_bytes(std::span(&header, 1)))) return false;
  return std::memcmp(header.magic.data(), kPdbMagic.data(), kPdbMagic.size()) == 0 &&
         std::has_single_bit(header.block_bytes) && header.block_bytes >= kMinBlockBytes &&
         header.block_bytes <= kMaxBlockBytes &&
         std::uint64_t{header.block_bytes} * header.block_count <= source.size() &&
         header.directory_blocks < header.block_count;
}

}  // namespace strobe::internal
