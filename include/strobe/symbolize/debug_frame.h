// What a module's file says of its call frames besides what is loaded with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {

// More is not read.
inline constexpr std::size_t kMaxDebugFrameBytes = std::size_t{64} << 20;

// The bytes of the section .debug_frame in the ELF file of `module`, or in that of its separate
// symbols; empty where there is none.
std::vector<std::uint8_t> ReadDebugFrame(const Module& module, const SymbolFiles& files);

}  // namespace strobe
