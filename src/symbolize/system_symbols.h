// What the system's own library knows of an image's names, for debug information in a format that
// is the system's own business.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace strobe::internal {

// A function at bytes from the image's beginning on; of 0 bytes where that is not known. The name
// is UTF-8, and valid during the call only. False ends the visit.
using SystemSymbolVisitor =
    std::function<bool(std::uint64_t address, std::uint64_t bytes, std::string_view name)>;

// Calls visit for each function that the image at `path` has a name for, in no order: on Windows by
// DbgHelp, from the PDB file that the image was linked with, where that lies beside it or where the
// linker put it. Visits nothing where the system has no such library, or that knows nothing. False
// where another thread asks it just now, maybe for ever.
bool VisitSystemSymbols(const std::string& path, const SystemSymbolVisitor& visit);

}  // namespace strobe::internal
