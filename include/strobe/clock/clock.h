// The contract of a clock.
#pragma once

#include <concepts>
#include <cstdint>

namespace strobe {

// MonotonicNs() never goes back and is unaffected by changes of the system's time. UnixTimeNs() is
// the time of day, may jump, and is used only to label profiles. Both may be called from any thread
// and never fail.
template <class C>
concept Clock = std::default_initializable<C> && requires(const C& clock) {
  { clock.MonotonicNs() } -> std::same_as<std::int64_t>;
  { clock.UnixTimeNs() } -> std::same_as<std::int64_t>;
};

}  // namespace strobe
