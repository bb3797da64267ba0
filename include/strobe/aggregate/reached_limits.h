// ReachedLimits: the process's WatchedLimits that have been exceeded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe. Only an excess costs something shared.
class ReachedLimits {
 public:
  // `value` of what is called `name` has become more than `limit`. Allocates nothing, and
  // waits for no other thread. Only the first kMaxNameBytes of the name are kept. Not signal-safe.
  static void Note(std::string_view name, std::int64_t value, std::int64_t limit) noexcept;
  static constexpr std::size_t kMaxNameBytes = 63;

  // All calls of Note.
  [[nodiscard]] static std::uint64_t count() noexcept {
    return count_.load(std::memory_order_acquire);
  }
  // "queue depth is 120, more than 100", of the last call; empty if there is none, or if
  // another thread is about to change it.
  [[nodiscard]] static std::string LastText();

 private:
  static constinit inline std::atomic<std::uint64_t> count_{0};
};

}  // namespace internal
}  // namespace strobe
