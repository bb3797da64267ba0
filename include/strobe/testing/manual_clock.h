// ManualClock: time that stands still until a test moves it.
#pragma once

#include <atomic>
#include <cstdint>

#include "strobe/clock/clock.h"

namespace strobe::testing {

// One time for the whole process, since a profiler makes clocks of its own wherever it needs one.
// Thread-safe.
class ManualClock {
 public:
  [[nodiscard]] std::int64_t MonotonicNs() const { return monotonic_ns_.load(); }
  [[nodiscard]] std::int64_t UnixTimeNs() const { return unix_time_ns_.load(); }

  // Lets time pass on both.
  static void Advance(std::int64_t duration_ns) {
    monotonic_ns_ += duration_ns;
    unix_time_ns_ += duration_ns;
  }
  // The system's time is set, forward or back; the monotonic one is not affected.
  static void SetUnixTimeNs(std::int64_t time_ns) { unix_time_ns_ = time_ns; }
  // As it was when the program began: one second after boot, on the first day of 2020.
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
