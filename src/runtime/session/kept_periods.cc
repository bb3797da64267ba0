#include "strobe/runtime/session/kept_periods.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "strobe/aggregate/joined_periods.h"

namespace strobe::internal {

std::string WindowText(std::int64_t kept_ns, std::int64_t last_ns, std::string_view why_less) {
  const double kept_s = static_cast<double>(kept_ns) / 1e9;
  if (kept_ns >= last_ns) return absl::StrFormat("the last %.1f s", kept_s);
  return absl::StrCat(
      absl::StrFormat("the last %.1f s of %.1f s: ", kept_s, static_cast<double>(last_ns) / 1e9),
      std::string(why_less));
}

void KeptPeriods::Add(RecordedPeriod period, Stats at_begin) {
  const std::size_t bytes = sizeof(Slice) + period.samples.memory_bytes();
  const std::int64_t duration_ns = period.duration_ns;
  slices_.push_back({std::move(period), std::move(at_begin), bytes});
  bytes_ += bytes;
  kept_ns_ += duration_ns;
  while (bytes_ > max_bytes_) DropOldest(Before::kMemoryLimit);
  while (!slices_.empty() && kept_ns_ - slices_.front().period.duration_ns >= keep_ns_)
    DropOldest(Before::kKeepTime);
}

void KeptPeriods::DropOldest(Before why) {
  bytes_ -= slices_.front().bytes;
  kept_ns_ -= slices_.front().period.duration_ns;
  slices_.pop_front();
  before_ = why;
}

void KeptPeriods::Clear() {
  slices_.clear();
  bytes_ = 0;
  kept_ns_ = 0;
  before_ = Before::kMemoryLimit;
}

std::optional<KeptPeriods::Window> KeptPeriods::Find(std::int64_t last_ns,
                                                     std::span<const std::size_t> columns,
                                                     const std::optional<RecordedPeriod>& levels,
                                                     std::span<const SpanNumber> slow_spans) const {
  std::vector<const RecordedPeriod*> periods;
  std::int64_t found_ns = 0;
  const Slice* oldest = nullptr;
  for (auto slice = slices_.rbegin(); slice != slices_.rend() && found_ns < last_ns; ++slice) {
    oldest = &*slice;
    periods.push_back(&slice->period);
    found_ns += slice->period.duration_ns;
  }
  if (oldest == nullptr) return std::nullopt;
  std::ranges::reverse(periods);
  if (levels) periods.push_back(&*levels);
  std::string_view why = "the session began then";
  if (before_ == Before::kMemoryLimit) why = "the limit collector.memory_bytes";
  if (before_ == Before::kKeepTime) why = "no more is kept (keep.last_s)";
  return Window{.period = JoinPeriods(periods, columns, slow_spans),
                .at_begin = oldest->at_begin,
                .text = WindowText(found_ns, last_ns, why)};
}

}  // namespace strobe::internal
