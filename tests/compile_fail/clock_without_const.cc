// refused: clock.MonotonicNs()
#include "strobe/clock/clock.h"

struct MyClock {
#ifdef REFUSED
  std::int64_t MonotonicNs() { return 1; }  // Not const: a clock is read through a const reference.
#else
  std::int64_t MonotonicNs() const { return 1; }
#endif
  std::int64_t UnixTimeNs() const { return 1; }
};
static_assert(strobe::Clock<MyClock>);
