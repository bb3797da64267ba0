// SystemClock: the clock of the machine.
#pragma once

#include <chrono>
#include <cstdint>

#include "strobe/clock/clock.h"

namespace strobe {

// On Linux both functions read the vdso's clock in about 20 ns, and MonotonicNs() is signal-safe.
struct SystemClock {
  [[nodiscard]] std::int64_t MonotonicNs() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  [[nodiscard]] std::int64_t UnixTimeNs() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};
static_assert(Clock<SystemClock>);

}  // namespace strobe
