// ManualClock: time that stands still until a test moves it.
#pragma once

#include <atomic>
#include <cstdint>

#include "strobe/clock/clock.h"

namespace strobe::testing {

// All ManualClocks of the process have the same time, because a profiler makes clocks of its own.
// Thread-safe.
class ManualClock {
 public:
  [[nodiscard]] std::int64_t MonotonicNs() const { return monotonic_ns_.load(); }
  [[nodiscard]] std::int64_t UnixTimeNs() const { return unix_time_ns_.load(); }

  // Advances both times.
  static void Advance(std::int64_t duration_ns) {
    monotonic_ns_ += duration_ns;
    unix_time_ns_ += duration_ns;
  }
  // Sets the system's time, forward or back. The monotonic time is not affected.
  static void SetUnixTimeNs(std::int64_t time_ns) { unix_time_ns_ = time_ns; }
  // Sets both times to their initial values: one second after boot, on the first day of 2020.
  static void Reset() {
    monotonic_ns_ = kFirstMonotonicNs;
    unix_time_ns_ = kFirstUnixTimeNs;
  }

 private:
  static constexpr std::int64_t kFirstMonotonicNs = 1'000'000'000;
  static constexpr std::int64_t kFirstUnixTimeNs = 1'577'836'800'000'000'000;
  static inline std::atomic<std::int64_t> monotonic_ns_{kFirstMonotonicNs};
  static inline std::atomic<std::int64_t> unix_time_ns_{kFirstUnixTimeNs};
};
static_assert(Clock<ManualClock>);

}  // namespace strobe::testing
