#include "strobe/aggregate/reached_limits.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

struct LastExcess {
  std::mutex mutex;
  std::array<char, ReachedLimits::kMaxNameBytes> name{};
  std::size_t name_bytes = 0;
  std::int64_t value = 0;
  std::int64_t limit = 0;
};

LastExcess& TheLastExcess() {
  static LastExcess last;
  return last;
}

}  // namespace

void ReachedLimits::Note(std::string_view name, std::int64_t value, std::int64_t limit) noexcept {
  // In a fork's child the mutex may be held for ever: only the text is missing then.
  LastExcess& last_excess = TheLastExcess();
  if (const std::unique_lock lock(last_excess.mutex, std::try_to_lock); lock.owns_lock()) {
    last_excess.name_bytes = std::min(name.size(), kMaxNameBytes);
    std::copy_n(name.data(), last_excess.name_bytes, last_excess.name.data());
    last_excess.value = value;
    last_excess.limit = limit;
  }
  count_.fetch_add(1, std::memory_order_release);
}

std::string ReachedLimits::LastText() {
  LastExcess& last_excess = TheLastExcess();
  const std::unique_lock lock(last_excess.mutex, std::try_to_lock);
  if (!lock.owns_lock() || last_excess.name_bytes == 0) return {};
  return absl::StrCat(std::string(last_excess.name.data(), last_excess.name_bytes), " is ",
                      last_excess.value, ", more than ", last_excess.limit);
}

}  // namespace strobe::internal
