// What DbgHelp, the system's own library, knows of an image's names.
#pragma once

#include <string>

#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// As SymbolFiles::VisitSymbols: from the PDB file that the image was linked with, where that lies
// beside it or where the linker put it.
bool VisitSystemSymbols(const std::string& path, const SymbolFiles::SymbolVisitor& visit);

}  // namespace strobe::internal
