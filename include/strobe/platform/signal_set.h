// Sets of signals as the kernel has them: signal n is bit n - 1.
#pragma once

#include <cstdint>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// `signal` is 1 to 64.
constexpr std::uint64_t BitOf(int signal) { return std::uint64_t{1} << (signal - 1); }

// True if the set has the signal; false for 0, which is no signal.
constexpr bool HasSignal(std::uint64_t set, int signal) {
  return signal > 0 && (set & BitOf(signal)) != 0;
}

}  // namespace internal
}  // namespace strobe
