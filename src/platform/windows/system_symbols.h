// The names and lines that DbgHelp, the system's own library, has for an image.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// See SymbolFiles::VisitSymbols. The names are from the PDB file that the image was linked with, if
// that file is beside the image or at the path that the linker wrote.
bool VisitSystemSymbols(const std::string& path, const SymbolFiles::SymbolVisitor& visit);

// See SymbolFiles::VisitLines. Before Windows 8, DbgHelp has no inlined functions.
bool VisitSystemLines(const std::string& path, std::span<const std::uint64_t> addresses,
                      const SymbolFiles::LineVisitor& visit);

}  // namespace strobe::internal
