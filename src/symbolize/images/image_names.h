// The names that an image's files have for its code: one reader for each format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "function_table.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

// The names of one image, by the addresses of its file. A symbol is preferred to the name of a
// stub, because the symbol is in the source code.
struct ImageNames {
  FunctionTable functions;
  FunctionTable more_functions;  // that are not in the first table
  FunctionTable stubs;
  bool has_image = false;  // one of the image's files was there
  // False if the next profile must read again: a file was missing, or its library was in use.
  bool is_final = true;

  [[nodiscard]] std::string_view Find(std::uint64_t address) const {
    for (const FunctionTable* table : {&functions, &more_functions}) {
      if (const std::string_view name = table->Find(address); !name.empty()) return name;
    }
    return stubs.Find(address);
  }
  [[nodiscard]] bool empty() const {
    return functions.empty() && more_functions.empty() && stubs.empty();
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    return functions.memory_bytes() + more_functions.memory_bytes() + stubs.memory_bytes();
  }
};

// Reads the module's own file and those of its separate debug information; for the vdso, the memory
// of this process. Functions come from the first file with full symbols, else from the first with
// any, and from the section .gnu_debugdata, in which distributions keep the symbols of functions
// that are not exported. Stubs come from the first file that has the code of its linkage table; a
// file of separate symbols does not have it.
ImageNames ReadElfNames(const Module& module, const SymbolFiles& files, const SymbolSearch& search);

// Reads the COFF symbols of the module's file. Without them, the names of its debug information, if
// the system's library may be used; without those, its exports. Final for every file that can be
// read, even if it has no names: a file that changes has another identity.
ImageNames ReadPeNames(const Module& module, const SymbolFiles& files, const SymbolSearch& search,
                       bool use_system_library);

}  // namespace strobe::internal
