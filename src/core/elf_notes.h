// The notes of ELF files, in a file or in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace strobe::internal {

// The build id in these notes, which begin at a multiple of `alignment`, that of their section or
// segment: lower-case hexadecimal, empty if there is none. A linker may join sections of other
// alignments in a segment.
std::string BuildIdIn(std::span<const std::uint8_t> notes, std::uint64_t alignment);

}  // namespace strobe::internal
