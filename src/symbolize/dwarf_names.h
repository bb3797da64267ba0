// FunctionNames: the names of functions, which other entries may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "dwarf_file.h"
#include "dwarf_functions.h"

namespace strobe::internal {

// What a function's declaration says.
struct FunctionName {
  std::string name;  // as in a symbol table; without one, as in the source code. May be empty.
  // Where it is declared, in the line table of the unit at `unit`.
  std::uint64_t unit = 0;
  std::uint64_t file = 0;
  std::uint32_t line = 0;  // 0 if unknown
};

// Of the functions of one unit.
class FunctionNames {
 public:
  // `bytes` are those of the unit from its header on. All must outlive this.
  FunctionNames(DwarfFile& file, const DwarfUnit& unit, std::span<const std::uint8_t> bytes)
      : file_(&file), unit_(&unit), bytes_(bytes) {}

  FunctionName Of(const FunctionEntry& function);

 private:
  // An entry that says something about functions that refer to it.
  struct Declaration {
    std::string name;
    std::string linkage_name;
    EntryPlace origin;
    FunctionName place;
  };

  const Declaration& At(const EntryPlace& place);
  Declaration Read(const EntryPlace& place);

  DwarfFile* file_;
  const DwarfUnit* unit_;
  std::span<const std::uint8_t> bytes_;
  std::map<EntryPlace, Declaration> declarations_;
};

}  // namespace strobe::internal
