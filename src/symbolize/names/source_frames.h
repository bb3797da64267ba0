// FindSourceFrames: the functions and lines at addresses of one module, with all that DWARF says.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

// Calls `found` once for each of `addresses`, which are sorted and distinct and count from the
// module's load bias. The frames are innermost first; there are none where nothing is known, as in
// a unit of debug information of more than 1 GiB. Returns false if no file of the module has DWARF.
// Takes as long as it takes: the work is bounded by the sizes of the units.
bool FindSourceFrames(
    const Module& module, std::span<const std::uint64_t> addresses, const SymbolFiles& files,
    const SymbolSearch& search,
    const std::function<void(std::uint64_t address, std::span<const SourceFrame> frames)>& found);

}  // namespace strobe::internal
