// DebugImage: the file of a module that has its DWARF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "../dwarf/dwarf_source.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

struct DebugImage {
  std::string identity;  // of the file: see FileSource
  // What the debug information adds to an address that counts from the image's load bias.
  std::uint64_t base = 0;
  DwarfSource::Files files;
};

// The first of the module's files that has debug information, and the files that this refers to.
// Empty if there is none. `files` must outlive the result.
std::optional<DebugImage> OpenDebugImage(const Module& module, const SymbolFiles& files,
                                         const SymbolSearch& search);

}  // namespace strobe::internal
