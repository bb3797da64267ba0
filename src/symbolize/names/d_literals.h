// DLiterals: the numbers, characters and strings in names of D. They have no further parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "mangled_text.h"

namespace strobe::internal {

class DLiterals : protected MangledText {
 public:
  explicit DLiterals(std::string_view text) : MangledText(text) {}

  // The number that these digits are; nothing if they are none, or it has more than 32 bits.
  static std::optional<std::uint32_t> NumberIn(std::string_view digits);
  // Reads a number.
  std::size_t Number();

  // Each reads a value, and writes it as the source has it: 42uL, '\x0a', 0x1.8p3, "text"w. A type
  // is told by its letter, and a string by that of its own.
  void Integer(char type);
  void Real();
  void String(char kind);

  using MangledText::Finish;

 private:
  void Character(char type, std::string_view digits);
};

}  // namespace strobe::internal
