// RandomTimer: a timer whose expiries are random on the axis of a thread's CPU time. Data plane.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/split_mix.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// One of a thread's, in its channel. The platform starts and stops it; see LinuxPlatform. It
// expires once: then the platform's handler, on the thread, sets the time to the next expiry.
struct RandomTimer {
  // By which the platform knows the kernel's event that stands for the timer; -1 if the timer does
  // not run. The other members are written before it.
  std::atomic<int> event{-1};
  std::atomic<std::uint8_t> provider{0};  // in the token of the captures, see ChannelToken
  std::atomic<std::uint32_t> mean_us{0};
  std::atomic<std::uint32_t> draws{0};  // counts the gaps, from a random number on

  // Draws the time to the next expiry, at least 1: it has an exponential distribution, so what is
  // left of it never depends on what has passed. One thread at a time.
  STROBE_SIGNAL_SAFE std::int64_t NextGapNs();
};

// Draws from the exponential distribution with mean 1, by comparisons alone, because a handler must
// not call the mathematics library (John von Neumann, 1951). A run of falling uniform numbers has
// an odd length with the probability e^-x, where x is the run's first number. If the length is
// even, 1 is added to the result, and another run is drawn. A run takes 2.7 numbers in the mean.
STROBE_SIGNAL_SAFE inline double DrawExponential(std::uint64_t& random) {
  // Beyond it: a probability of e^-40.
  constexpr double kMost = 40;
  for (double whole = 0; whole < kMost; ++whole) {
    const double first = UniformSplitMix64(random);
    double last = first;
    bool is_odd = true;
    for (double next = UniformSplitMix64(random); next < last; next = UniformSplitMix64(random)) {
      last = next;
      is_odd = !is_odd;
    }
    if (is_odd) return whole + first;
  }
  return kMost;
}

STROBE_SIGNAL_SAFE inline std::int64_t RandomTimer::NextGapNs() {
  const std::uint32_t draw = draws.load(std::memory_order_relaxed);
  draws.store(draw + 1, std::memory_order_relaxed);
  // A word of state would be too much for each idle thread: each gap has a state of its own.
  std::uint64_t random = reinterpret_cast<std::uintptr_t>(this) ^ std::uint64_t{draw} << 32;
  random = SplitMix64(random);
  const double gap_ns = DrawExponential(random) * 1e3 * mean_us.load(std::memory_order_relaxed);
  return std::max<std::int64_t>(static_cast<std::int64_t>(gap_ns), 1);
}

}  // namespace internal
}  // namespace strobe
