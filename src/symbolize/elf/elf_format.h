// What the sources of ElfFile share: numbers of the format, and reading its structures.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../images/byte_source.h"

namespace strobe::internal {

// The file's structures are read without conversion.
static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint16_t kMachineX86_64 = 62;
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
  static constexpr std::uint32_t kZlib = 1;

  std::uint32_t type, reserved;
  std::uint64_t size, alignment;
};

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
