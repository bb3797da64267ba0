#include "instruction_parts.h"

#include <cstring>

#include "instruction_bytes.h"

namespace strobe::internal {
namespace {

// The prefixes of vectors: inverted bits of rex, a map, the register of a third operand, and the
// prefix that stands for 66, F3 or F2.
void SplitVector(std::uint8_t first, InstructionParts& parts) {
  const bool is_short = first == 0xC5;
  const std::uint8_t second = parts.Byte(parts.at + 1);
  const std::uint8_t third = parts.Byte(parts.at + (is_short ? 1 : 2));
  parts.is_vector = true;
  parts.rex = 0x40u | ((second & 0x80) == 0 ? 4 : 0);
  if (!is_short && (second & 0x40) == 0) parts.rex |= 2;
  if (!is_short && (second & 0x20) == 0) parts.rex |= 1;
  parts.map = is_short ? 2 : 1 + (second & (first == 0x62 ? 7u : 0x1Fu));
  parts.vector_register = ~(third >> 3) & 15u;
  parts.has_16_bits = (third & 3) == 1;
  parts.repeats = (third & 3) == 2;
  parts.repeats_not = (third & 3) == 3;
  parts.at += is_short ? 2 : first == 0x62 ? 4 : 3;
}

}  // namespace

InstructionParts::Memory InstructionParts::memory() const {
  Memory memory;
  const unsigned mode = modrm() >> 6;
  if (mode == 3) return memory;
  std::size_t next = at + 2;
  memory.base = operand();
  const bool has_sib = (memory.base & 7) == 4;
  if (has_sib) {
    const std::uint8_t sib = Byte(next++);
    memory.base = (sib & 7u) | (rex & 1) << 3;
    memory.has_index = ((sib >> 3 & 7u) | (rex & 2) << 2) != 4;
  }
  const bool has_no_base = mode == 0 && (memory.base & 7) == 5;
  memory.is_relative = has_no_base && !has_sib;
  if (has_no_base) memory.base = kNoRegister;
  memory.displacement = mode == 1 ? static_cast<std::int8_t>(Byte(next)) : 0;
  if ((mode == 2 || has_no_base) && next + sizeof(memory.displacement) <= code.size())
    std::memcpy(&memory.displacement, code.data() + next, sizeof(memory.displacement));
  return memory;
}

std::int32_t InstructionParts::Last(std::size_t bytes) const {
  if (bytes == 1) return static_cast<std::int8_t>(code.back());
  std::int32_t number = 0;
  if (code.size() >= sizeof(number))
    std::memcpy(&number, code.data() + code.size() - sizeof(number), sizeof(number));
  return number;
}

InstructionParts SplitInstruction(std::span<const std::uint8_t> code) {
  InstructionParts parts{.code = code};
  std::size_t& at = parts.at;
  for (; at < code.size() && IsInstructionPrefix(code[at]); ++at) {
    parts.has_16_bits |= code[at] == 0x66;
    parts.repeats |= code[at] == 0xF3;
    parts.repeats_not |= code[at] == 0xF2;
  }
  if ((parts.Byte(at) & 0xF0) == 0x40) parts.rex = parts.Byte(at++);
  const std::uint8_t first = parts.Byte(at);
  if (first == 0xC5 || first == 0xC4 || first == 0x62 || IsXopPrefix(first, parts.Byte(at + 1))) {
    SplitVector(first, parts);
    return parts;
  }
  if (first != 0x0F) return parts;
  ++at;
  parts.map = 2;
  if (parts.Byte(at) == 0x38 || parts.Byte(at) == 0x3A) {
    parts.map = parts.Byte(at) == 0x38 ? 3 : 4;
    ++at;
  }
  return parts;
}

}  // namespace strobe::internal
