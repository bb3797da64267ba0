// How the values of attributes are encoded (DWARF 5, section 7.5.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dwarf_constants.h"
#include "unwind/dwarf_reader.h"

namespace strobe::internal {

// What the size of a value depends on. Addresses have 8 bytes.
struct UnitShape {
  std::uint16_t version = 0;
  bool is_64 = false;  // offsets have 8 bytes, else 4

  [[nodiscard]] std::size_t offset_bytes() const { return is_64 ? 8 : 4; }
  // False of versions that this code does not read.
  [[nodiscard]] bool is_known() const { return version >= 2 && version <= 5; }
  friend bool operator==(const UnitShape&, const UnitShape&) = default;
};

// The value of an attribute, as it is encoded. Its form tells what the number is: itself, an
// offset, or an index.
struct FormValue {
  DwarfForm form{};
  bool is_present = false;
  // Of a text or block inside of the entry: its position in the reader.
  std::uint64_t number = 0;

  [[nodiscard]] std::uint64_t or_zero() const { return is_present ? number : 0; }
};

// The size of the form's values; empty if it varies. kIndirect and unknown forms vary.
std::optional<std::uint32_t> FixedBytes(DwarfForm form, UnitShape shape);

// Skips a value whose size varies. Fails the reader if the form is unknown.
void SkipVarying(DwarfReader& reader, DwarfForm form, UnitShape shape);

// Reads a value. `constant` is the value of kImplicitConstant. Fails the reader if the form is
// unknown.
FormValue ReadForm(DwarfReader& reader, DwarfForm form, std::int64_t constant, UnitShape shape);

// The length at the front of a unit or a table. Sets `is_64` (section 7.4).
inline std::uint64_t ReadLength(DwarfReader& reader, bool& is_64) {
  const auto length = reader.Read<std::uint32_t>();
  is_64 = length == 0xFFFFFFFF;
  return is_64 ? reader.Read<std::uint64_t>() : length;
}

// An offset of the unit's size.
inline std::uint64_t ReadOffset(DwarfReader& reader, bool is_64) {
  return is_64 ? reader.Read<std::uint64_t>() : reader.Read<std::uint32_t>();
}

}  // namespace strobe::internal
