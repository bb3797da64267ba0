// What the sources of ElfFile share: numbers of the format, and reading its structures.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "../images/byte_source.h"

namespace strobe::internal {

// The file's structures are read without conversion.
static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint32_t kSectionProgramBits = 1;
inline constexpr std::uint32_t kSectionX86Unwind =
    0x70000001;  // .eh_frame, as some linkers write it
inline constexpr std::uint32_t kSectionSymtab = 2;
inline constexpr std::uint32_t kSectionDynsym = 11;
inline constexpr std::uint32_t kSegmentLoad = 1;
inline constexpr std::uint32_t kSegmentEhFrameHdr = 0x6474E550;
inline constexpr std::uint32_t kSegmentExecutable = 1;  // a flag

// At the front of a compressed section: Elf64_Chdr.
struct CompressionHeader {
  static constexpr std::uint32_t kZlib = 1, kZstd = 2;

  std::uint32_t type, reserved;
  std::uint64_t size, alignment;
};

// What is compressed in a section, behind one of two heads.
struct CompressedContent {
  std::uint32_t type = CompressionHeader::kZlib;
  std::size_t head_bytes = 0;
  std::uint64_t size = 0;  // inflated
};
// `section` begins with a CompressionHeader or, if it is one of .zdebug_* as older tools wrote
// them, with "ZLIB" and the size as 8 bytes, the highest first. Nothing if it is neither.
inline std::optional<CompressedContent> FindCompressedContent(
    std::span<const std::uint8_t> section) {
  constexpr std::string_view kGnuMagic = "ZLIB";
  constexpr std::size_t kGnuHeadBytes = 12;
  const std::string_view text(reinterpret_cast<const char*>(section.data()), section.size());
  if (text.starts_with(kGnuMagic) && section.size() > kGnuHeadBytes) {
    std::uint64_t size = 0;
    for (std::size_t i = kGnuMagic.size(); i < kGnuHeadBytes; ++i) size = size << 8 | section[i];
    return CompressedContent{CompressionHeader::kZlib, kGnuHeadBytes, size};
  }
  CompressionHeader header;
  if (section.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, section.data(), sizeof(header));
  return CompressedContent{header.type, sizeof(header), header.size};
}

template <class T>
bool ReadOne(const ByteSource& source, std::uint64_t offset, T& value) {
  return source.ReadAt(offset, std::as_writable_bytes(std::span(&value, 1)));
}

template <class T>
bool ReadArray(const ByteSource& source, std::uint64_t offset, std::uint64_t count,
               std::vector<T>& values) {
  if (offset > source.size() || count > (source.size() - offset) / sizeof(T)) return false;
  values.resize(count);
  return source.ReadAt(offset, std::as_writable_bytes(std::span(values)));
}

}  // namespace strobe::internal
