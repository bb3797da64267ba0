// KeptPeriods: the periods of the last time, for a profile of what was before a moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "strobe/aggregate/recording.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stats.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Slices of a recording, each the next after the one before. Not thread-safe.
class KeptPeriods {
 public:
  // The last slices that reach back `keep_ns`, in at most `max_bytes`: the oldest are dropped.
  KeptPeriods(std::int64_t keep_ns, std::size_t max_bytes)
      : keep_ns_(keep_ns), max_bytes_(max_bytes) {}

  // Adds the slice that ends now. `at_begin` are the statistics at its begin.
  void Add(RecordedPeriod period, Stats at_begin);
  // Forgets all slices: the next does not follow the last.
  void Clear();

  struct Window {
    RecordedPeriod period;
    Stats at_begin;
    std::string text;  // see Profile::window
  };
  // The slices that reach back `last_ns` from the end of the newest, as one period with these
  // columns. `levels` are rows of that end which no slice has. `slow_spans` are those that are
  // known by now, in order. Nothing if there is no slice.
  [[nodiscard]] std::optional<Window> Find(std::int64_t last_ns,
                                           std::span<const std::size_t> columns,
                                           const std::optional<RecordedPeriod>& levels,
                                           std::span<const SpanNumber> slow_spans) const;

  [[nodiscard]] std::size_t size() const { return slices_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const { return bytes_; }

 private:
  struct Slice {
    RecordedPeriod period;
    Stats at_begin;
    std::size_t bytes = 0;
  };
  // Why there is nothing before the oldest slice.
  enum class Before : std::uint8_t { kSessionBegin, kMemoryLimit, kKeepTime };

  void DropOldest(Before why);

  const std::int64_t keep_ns_;
  const std::size_t max_bytes_;
  std::deque<Slice> slices_;
  std::size_t bytes_ = 0;
  std::int64_t kept_ns_ = 0;  // the time of all slices
  Before before_ = Before::kSessionBegin;
};

// "the last 21.4 s of 30.0 s: the memory limit".
[[nodiscard]] std::string WindowText(std::int64_t kept_ns, std::int64_t last_ns,
                                     std::string_view why_less);

}  // namespace internal
}  // namespace strobe
