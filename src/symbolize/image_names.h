// What an image's files call its code: one reader for each format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "function_table.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// The names of one image, by the addresses of its file. Symbols come before the names of stubs: a
// programmer wrote them.
struct ImageNames {
  FunctionTable functions;
  FunctionTable stubs;
  // False if the next profile has to read again: a file was not there, or could not be asked.
  bool is_final = true;

  [[nodiscard]] std::string_view Find(std::uint64_t address) const {
    const std::string_view name = functions.Find(address);
    return name.empty() ? stubs.Find(address) : name;
  }
  [[nodiscard]] bool empty() const { return functions.empty() && stubs.empty(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return functions.memory_bytes() + stubs.memory_bytes();
  }
};

// From the module's own file, the file of its separate symbols below `debug_directory` (none if
// that is empty), or for the vdso, the memory of this process. Functions are those of the first
// file with full symbols, else of the first with any; stubs those of the first file that has the
// code of its linkage table, which a file of separate symbols has not.
ImageNames ReadElfNames(const Module& module, const SymbolFiles& files,
                        const std::string& debug_directory);

// COFF's symbols in the module's file; without them, the names of its debug information, if the
// system's library may be used; without those, its exports. Final for every file that can be read,
// even if it has no names: a file that is changed has another identity.
ImageNames ReadPeNames(const Module& module, const SymbolFiles& files, bool use_system_library);

}  // namespace strobe::internal
