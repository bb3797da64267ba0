// InstructionBytes: where an instruction of x86-64 ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strobe::internal {

// Whether `byte` is one of those that may stand before an instruction, in any order. That of
// registers (40 to 4F) is none of them: it stands right before the opcode.
constexpr bool IsInstructionPrefix(std::uint8_t byte) {
  const bool is_segment = (byte & 0xE7) == 0x26 || (byte & 0xFE) == 0x64;
  return is_segment || (byte & 0xFE) == 0x66 || byte == 0xF0 || (byte & 0xFE) == 0xF2;
}

// Whether an instruction's opcode begins with AMD's prefix of vectors, and not with a pop.
constexpr bool IsXopPrefix(std::uint8_t first, std::uint8_t second) {
  return first == 0x8F && (second & 0x1F) >= 8;
}

// The length of the instruction that `code` begins with; 0 if it is invalid in 64-bit mode, or does
// not end within `code`.
std::size_t InstructionBytes(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
