// Symbols: the names of a profile's frames, as a symbolizer found them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/base/address.h"

namespace strobe {

struct FunctionSymbol {
  std::string name;         // demangled, valid UTF-8; for unknown code "libname.so+0x1234"
  std::string system_name;  // as in the symbol table; equal to `name` if it was not mangled
  bool resolved = true;     // false if `name` replaces a missing symbol
  std::string file{};       // where it is defined, valid UTF-8; empty if unknown
  std::uint32_t line = 0;   // where it begins in `file`; 0 if unknown
};

// A line of source text in a function.
struct SourceLine {
  std::uint32_t function = 0;  // index into Symbols::functions
  std::uint32_t line = 0;      // in the function's file; 0 if unknown
  std::uint32_t column = 0;    // 0 if unknown
};

// The function of one frame, and the functions that the compiler has inlined there.
struct FrameSymbols {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // Index into Symbols::functions. kNone leaves the frame without a name.
  std::uint32_t function = kNone;
  std::uint32_t line = 0;    // see SourceLine
  std::uint32_t column = 0;  // see SourceLine
  // Symbols::inlined[inlined_begin, inlined_begin + inlined_count), innermost first: each was
  // called by the next one, and the last by `function` at `line`.
  std::uint32_t inlined_begin = 0;
  std::uint32_t inlined_count = 0;
};

// What a symbolizer has looked up of a module's frames, whether or not it found it.
enum class SymbolDetail : std::uint8_t {
  kNone,   // nothing, or its files were not there: another program may find more
  kNames,  // the name of each frame's function
  kLines,  // that, each frame's source line, and the functions inlined there
};

struct Symbols {
  // Distinct, by name, system_name and file.
  std::vector<FunctionSymbol> functions;
  // One for each of Profile::modules, or empty if nothing was symbolized.
  std::vector<SymbolDetail> modules;
  // One for each of Profile::frames, or empty if nothing was symbolized.
  std::vector<FrameSymbols> frames;
  std::vector<SourceLine> inlined;  // of all frames
  // A module that has more functions than could be kept; empty if there is none.
  std::string partly_named;
};

}  // namespace strobe
