// WrittenRegisters: which general registers an instruction of x86-64 writes.
#pragma once

#include <cstdint>

#include "instruction_parts.h"
#include "strobe/arch/x86_64.h"

namespace strobe::internal {

// A set of registers: a bit for each, by its encoding.
using RegisterSet = std::uint16_t;

inline constexpr RegisterSet kAllRegisters = 0xFFFF;
// Those that a function need not give back (System V ABI, AMD64 supplement, figure 3.4).
inline constexpr RegisterSet kScratchRegisters = 0x0FC7;

constexpr RegisterSet SetOf(unsigned number) {
  return number < kX86_64GeneralRegisters ? static_cast<RegisterSet>(1u << number) : RegisterSet{0};
}

// All that the instruction may write, also those that no operand names, by Intel's manual, volume
// 2. A part of a register counts, and what a system call writes. What pushes, pops, calls and
// returns do to rsp does not.
RegisterSet WrittenRegisters(const InstructionParts& parts);

}  // namespace strobe::internal
