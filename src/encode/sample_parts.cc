#include "sample_parts.h"

#include <algorithm>
#include <cstddef>

namespace strobe::internal {
namespace {

// Wraps around where a profile breaks the promise that moments are a part of their row.
std::int64_t Difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

}  // namespace

SampleParts::SampleParts(const Profile& profile) {
  const std::size_t columns = profile.value_types.size();
  std::vector<bool> has_moments(profile.samples.size());
  parts_.reserve(profile.moments.size() + profile.samples.size());
  if (!profile.moments.empty()) rests_ = profile.values;
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    const ProfileMoment& moment = profile.moments[i];
    const std::span<const std::int64_t> values = profile.MomentValues(i);
    has_moments[moment.sample] = true;
    for (std::size_t column = 0; column < columns; ++column) {
      std::int64_t& rest = rests_[moment.sample * columns + column];
      rest = Difference(rest, values[column]);
    }
    parts_.push_back({.sample = moment.sample, .time_ns = moment.time_ns, .values = values});
  }
  const std::span<const std::int64_t> rests = rests_.empty() ? profile.values : rests_;
  for (std::uint32_t i = 0; i < profile.samples.size(); ++i) {
    const std::span<const std::int64_t> values = rests.subspan(i * columns, columns);
    const bool is_empty =
        std::ranges::all_of(values, [](std::int64_t value) { return value == 0; });
    if (!is_empty || !has_moments[i])
      parts_.push_back({.sample = i, .time_ns = 0, .values = values});
  }
}

}  // namespace strobe::internal
