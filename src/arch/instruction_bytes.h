// InstructionBytes: where an instruction of x86-64 ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strobe::internal {

// The length of the instruction that `code` begins with; 0 if it is invalid in 64-bit mode, or does
// not end within `code`.
std::size_t InstructionBytes(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
