// WithRows: a profile with some of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/core/profile.h"

namespace strobe {

// A copy of `profile` with only the rows for which is_wanted(row) is true, and without moments.
template <class IsWanted>
Profile WithRows(const Profile& profile, const IsWanted& is_wanted) {
  Profile selected = profile;
  selected.samples.clear();
  selected.values.clear();
  selected.moments.clear();
  selected.moment_values.clear();
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    if (!is_wanted(i)) continue;
    selected.samples.push_back(profile.samples[i]);
    const std::span<const std::int64_t> values = profile.Values(i);
    selected.values.insert(selected.values.end(), values.begin(), values.end());
  }
  return selected;
}

}  // namespace strobe
