// The functions that have the code at given addresses, from the entries of one unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dwarf_file.h"

namespace strobe::internal {

// A function with code of its own, or a copy of a function inlined into another.
struct FunctionEntry {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  std::uint32_t caller = kNone;  // the function that this one is inlined into; kNone if it is not
  FormValue name;                // texts inside of the entry are in the unit's bytes
  FormValue linkage_name;
  EntryPlace origin;  // the entry that has what this one does not say
  std::uint64_t declaration_file = 0;
  std::uint32_t declaration_line = 0;
  // Where it was inlined: in the unit's line table.
  std::uint64_t call_file = 0;
  std::uint32_t call_line = 0;
  std::uint32_t call_column = 0;
  std::uint32_t call_discriminator = 0;
};

struct FunctionMap {
  std::vector<FunctionEntry> entries;
  std::vector<std::uint32_t> innermost;  // for each address, an index into `entries`, or kNone
};

// Functions nested more deeply are left out, and so are more than this many inlined at one address.
inline constexpr std::size_t kMaxFunctionDepth = 512;

// `bytes` are those of the unit from its header on; `addresses` are sorted. A broken unit yields
// what was read before the fault.
FunctionMap FindFunctions(DwarfFile& file, const DwarfUnit& unit,
                          std::span<const std::uint8_t> bytes,
                          std::span<const std::uint64_t> addresses);

}  // namespace strobe::internal
