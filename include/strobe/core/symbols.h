// Symbols: the names of a profile's frames, as a symbolizer found them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/base/address.h"

namespace strobe {

struct FunctionSymbol {
  std::string name;         // demangled, valid UTF-8; for unknown code "libname.so+0x1234"
  std::string system_name;  // as in the symbol table; equal to `name` where it was not mangled
  bool resolved = true;     // false for a name that stands for want of a symbol
};

// One level of a frame: several where functions were inlined there.
struct FrameSymbols {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::uint32_t function =
      kNone;  // index into Symbols::functions; kNone leaves the frame without a name
};

struct Symbols {
  std::vector<FunctionSymbol> functions;  // distinct
  std::vector<FrameSymbols>
      frames;  // one for each of Profile::frames, or empty where nothing was symbolized
  std::string
      // A module that has more functions than could be kept; empty where there is none.
      partly_named;
};

}  // namespace strobe
