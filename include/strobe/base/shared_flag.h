// SharedFlag: a flag in memory that another process may write.
#pragma once

#include <atomic>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// As a std::atomic<bool>, but each value of its byte is a valid one: 0 is false, all others are
// true. A bool that another process has set to 9 would be undefined behaviour.
class SharedFlag {
 public:
  SharedFlag(bool value) : byte_(value) {}  // NOLINT(google-explicit-constructor): as std::atomic
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;

  [[nodiscard]] STROBE_SIGNAL_SAFE bool load(std::memory_order order) const noexcept {
    return byte_.load(order) != 0;
  }
  STROBE_SIGNAL_SAFE void store(bool value, std::memory_order order) noexcept {
    byte_.store(value, order);
  }
  STROBE_SIGNAL_SAFE bool exchange(bool value, std::memory_order order) noexcept {
    return byte_.exchange(value, order) != 0;
  }

  // Sequentially consistent.
  void operator=(bool value) noexcept {  // NOLINT(*-unconventional-assign-operator)
    store(value, std::memory_order_seq_cst);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic
  operator bool() const noexcept { return load(std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint8_t> byte_;
};
static_assert(sizeof(SharedFlag) == 1);

}  // namespace internal
}  // namespace strobe
