// SplitMix64: pseudo-random numbers from one word of state (Steele, Lea and Flood, 2014).
#pragma once

#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Advances the state, and returns 64 random bits. Any state is a good one.
STROBE_SIGNAL_SAFE constexpr std::uint64_t SplitMix64(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The same, as a number that is uniform in [0, 1).
STROBE_SIGNAL_SAFE constexpr double UniformSplitMix64(std::uint64_t& state) {
  return static_cast<double>(SplitMix64(state) >> 11) * 0x1.0p-53;
}

}  // namespace internal
}  // namespace strobe
