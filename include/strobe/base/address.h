#pragma once

#include <cstdint>

namespace strobe {

// A virtual address of the profiled process. 64 bits on every target, and never dereferenced as
// such.
using Address = std::uint64_t;

}  // namespace strobe
