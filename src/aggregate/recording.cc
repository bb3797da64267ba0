#include "strobe/aggregate/recording.h"

#include <utility>

namespace strobe {

Recording::Recording(std::vector<std::size_t> columns, std::size_t memory_limit_bytes,
                     const Time& begin)
    : columns_(std::move(columns)),
      aggregator_(columns_.size(), memory_limit_bytes),
      begin_(begin) {}

void Recording::Join(const Recording& other) {
  aggregator_.CopyModules(other.aggregator_);
  keys_.assign(other.keys_.size(), kNoKey);
  for (std::size_t thread = 0; thread < keys_.size(); ++thread) {
    if (other.keys_[thread] != kNoKey)
      keys_[thread] = aggregator_.AddThreadOf(other.aggregator_, other.keys_[thread]);
  }
}

void Recording::AddThread(std::uint32_t thread, std::uint64_t id, std::string name) {
  if (thread >= keys_.size()) keys_.resize(thread + 1, kNoKey);
  keys_[thread] = aggregator_.AddThread(id, std::move(name));
}

void Recording::RemoveThread(std::uint32_t thread) {
  aggregator_.RemoveThread(std::exchange(keys_[thread], kNoKey));
  if (thread < is_unlisted_.size()) is_unlisted_[thread] = false;
}

void Recording::AddLife(std::uint32_t thread, const LifePart& part) {
  if (aggregator_.AddLife(keys_[thread], part)) return;
  if (thread >= is_unlisted_.size()) is_unlisted_.resize(keys_.size());
  if (is_unlisted_[thread]) return;
  is_unlisted_[thread] = true;
  ++threads_unlisted_;
}

RecordedPeriod Recording::Take(const LabelTable& labels, const Time& now,
                               std::span<const SpanNumber> slow_under_way) {
  RecordedPeriod period{.samples = aggregator_.Take(labels, ProcessSlowSpans(), slow_under_way),
                        .time_ns = begin_.unix_ns,
                        .duration_ns = now.monotonic_ns - begin_.monotonic_ns,
                        .overflows = overflows() - overflows_before_};
  period.samples.unix_offset_ns = begin_.unix_ns - begin_.monotonic_ns;
  begin_ = now;
  overflows_before_ = overflows();
  is_unlisted_.clear();
  return period;
}

}  // namespace strobe
