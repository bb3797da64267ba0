// A Profile as plain data, for tests of the aggregator: (thread, stack from the root in words) ->
// values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/testing/profile_check.h"

namespace strobe::testing {

// A limit to the memory of an aggregator that its test does not reach.
inline constexpr std::size_t kAmpleBytes = std::size_t{16} << 20;

using FlatProfile = std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>>;

// A module of 0x1000 bytes.
inline Module MakeModule(Address start, const std::string& path) {
  return {.start = start,
          .limit = start + 0x1000,
          .file_offset = 0,
          .load_bias = start,
          .path = path,
          .build_id = ""};
}

inline std::string FrameText(const Profile& profile, const Frame& frame) {
  if (frame.is_pseudo())
    return std::string(PseudoFrameName(static_cast<PseudoFrame>(frame.address)));
  const std::string address = absl::StrCat(absl::Hex(frame.address));
  return frame.module == Frame::kNoModule
             ? address
             : absl::StrCat(profile.modules[frame.module].path, ":", address);
}

inline FlatProfile Flatten(const Profile& profile) {
  FlatProfile flat;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::string stack;
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      stack = absl::StrCat(FrameText(profile, profile.frames[profile.stacks[node].frame]),
                           stack.empty() ? "" : " ", stack);
    }
    const auto values = profile.Values(i);
    flat[{profile.Labels(i).Text(kThreadNameLabel), stack}].assign(values.begin(), values.end());
  }
  return flat;
}

// Converts a period and checks that the result is consistent.
inline Profile ToProfile(AggregatedPeriod period) {
  Profile profile;
  for (std::size_t i = 0; i < period.rows.value_count(); ++i)
    profile.value_types.push_back({i == 0 ? "samples" : i == 1 ? "cpu" : "wall", "count"});
  FillProfile(std::move(period), profile);
  EXPECT_EQ(CheckProfile(profile), "");
  return profile;
}

}  // namespace strobe::testing
