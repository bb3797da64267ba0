#include "strobe/watched_limit.h"

#include "strobe/aggregate/reached_limits.h"

namespace strobe {

void WatchedLimit::Change(std::int64_t value) noexcept {
  const bool is_over = value > limit_;
  if (!is_over_.exchange(is_over, std::memory_order_relaxed) && is_over) Exceed(value);
}

void WatchedLimit::Exceed(std::int64_t value) const noexcept {
  internal::ReachedLimits::Note(name_, value, limit_);
}

}  // namespace strobe
