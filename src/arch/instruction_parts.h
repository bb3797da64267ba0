// InstructionParts: an instruction of x86-64, taken apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strobe::internal {

// Its opcode behind its prefixes, and its operands.
struct InstructionParts {
  static constexpr unsigned kNoRegister = 16;

  // The operand [base + displacement]. Without a base: from the instruction's end on, or from 0.
  struct Memory {
    unsigned base = kNoRegister;
    bool has_index = false;
    bool is_relative = false;  // to the instruction's end
    std::int32_t displacement = 0;
  };

  std::span<const std::uint8_t> code;  // all of it, and no more
  std::size_t at = 0;                  // of the opcode, in its map
  unsigned map =
      1;  // 1: one byte; 2: behind 0F; 3: behind 0F 38; 4: 0F 3A; 6: EVEX' fifth; XOP: 9+
  unsigned rex = 0;
  unsigned vector_register = kNoRegister;  // that a vector's prefix names
  bool is_vector = false;                  // has such a prefix
  bool has_16_bits = false;                // 66
  bool repeats = false;                    // F3
  bool repeats_not = false;                // F2

  [[nodiscard]] std::uint8_t Byte(std::size_t index) const {
    return index < code.size() ? code[index] : 0;
  }
  [[nodiscard]] std::uint8_t opcode() const { return Byte(at); }
  [[nodiscard]] std::uint8_t modrm() const { return Byte(at + 1); }
  [[nodiscard]] bool has_register_operand() const { return modrm() >> 6 == 3; }
  [[nodiscard]] bool has_64_bits() const { return (rex & 8) != 0; }
  // Registers by their encodings: those of the modrm byte, and the one in the opcode.
  [[nodiscard]] unsigned reg() const { return (modrm() >> 3 & 7u) | (rex & 4) << 1; }
  [[nodiscard]] unsigned operand() const { return (modrm() & 7u) | (rex & 1) << 3; }
  [[nodiscard]] unsigned opcode_register() const { return (opcode() & 7u) | (rex & 1) << 3; }
  [[nodiscard]] unsigned extension() const { return modrm() >> 3 & 7u; }

  // The operand in memory that the modrm byte names, if it names one.
  [[nodiscard]] Memory memory() const;
  // The number that the instruction ends with.
  [[nodiscard]] std::int32_t Last(std::size_t bytes) const;
};

// Of an instruction that is `code`.
InstructionParts SplitInstruction(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
