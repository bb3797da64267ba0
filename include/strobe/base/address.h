#pragma once

#include <cstdint>

namespace strobe {

// A virtual address of the profiled process: 64 bits on every target, and never dereferenced
// directly.
using Address = std::uint64_t;

// No system maps memory below this address, so no code and no frame lies there.
inline constexpr Address kLowestCode = 4096;

}  // namespace strobe
