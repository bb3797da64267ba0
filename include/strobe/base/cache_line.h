#pragma once

#include <cstddef>

namespace strobe {

// The distance at which two atomics stop slowing each other down. 64 on every CPU this project runs
// on; the standard's hardware_destructive_interference_size changes with compiler flags, and so
// must not appear in a layout.
inline constexpr std::size_t kCacheLineBytes = 64;

}  // namespace strobe
