// Call frame information that is in a module's file, but not loaded into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {

// A larger section is not read.
inline constexpr std::size_t kMaxDebugFrameBytes = std::size_t{64} << 20;

// The bytes of the section .debug_frame in the ELF file of `module`, or in the file of its separate
// symbols. Empty if there is none.
std::vector<std::uint8_t> ReadDebugFrame(const Module& module, const SymbolFiles& files);

}  // namespace strobe
