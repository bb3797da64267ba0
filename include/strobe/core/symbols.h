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
};

// The function of one frame.
struct FrameSymbols {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // Index into Symbols::functions. kNone leaves the frame without a name.
  std::uint32_t function = kNone;
};

struct Symbols {
  std::vector<FunctionSymbol> functions;  // distinct
  // One for each of Profile::frames, or empty if nothing was symbolized.
  std::vector<FrameSymbols> frames;
  // A module that has more functions than could be kept; empty if there is none.
  std::string partly_named;
};

}  // namespace strobe
