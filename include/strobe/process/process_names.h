// ProcessNames: the functions at addresses of other processes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/module_map.h"
#include "strobe/core/options.h"
#include "strobe/process/process_table.h"
#include "strobe/symbolize/image_symbolizer.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {

struct NamedFunction {
  std::string function;      // demangled; "libname.so+0x1234" if no symbol covers the address
  std::string file{};        // of the source; empty if unknown
  std::uint32_t line = 0;    // in `file`; 0 if unknown
  std::uint32_t column = 0;  // 0 if unknown
  bool resolved = true;      // false if `function` replaces a missing symbol

  friend bool operator==(const NamedFunction&, const NamedFunction&) = default;
};

struct AddressName {
  // Innermost first: those that the compiler has inlined there, and behind them the function whose
  // code it is. Never empty.
  std::vector<NamedFunction> functions;
  std::string module;  // the path of its file or the name of its memory; empty if unknown
  std::uint64_t file_offset = 0;  // of the code in that file
};

// Names come from the files of a process's images, as an ImageSymbolizer finds them; those that a
// ProcessTable has open still have names when their paths have gone. Mode kFull, the default, has
// lines and inlined functions where there is debug information; kNames reads no debug information.
// Generated code has no names. What was read stays for the next call, within
// ImageSymbolizerOptions::cache_bytes.
//
// Used by one thread at a time.
class ProcessNames {
 public:
  // `files` must outlive the object.
  explicit ProcessNames(const SymbolFiles& files,
                        ImageSymbolizerOptions options = {.mode = SymbolMode::kFull})
      : symbolizer_(files, std::move(options)) {}

  // One name for each of `addresses`, in their order: those of ProcessTable::Unwind, which are of
  // the calls. Many at once cost less than one after the other. Never fails: code without names has
  // its module and place.
  std::vector<AddressName> Name(const ProcessCode& code, std::span<const Address> addresses);

 private:
  ImageSymbolizer symbolizer_;
};

// The module as a symbolizer of this process needs it: it reads the vdso in its own memory.
Module ModuleToName(const ProcessModule& module);

}  // namespace strobe
