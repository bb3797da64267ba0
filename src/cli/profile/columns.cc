#include "columns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace strobe::internal {

void SetColumns(LoadedProfile& loaded, std::span<const ValueType> types) {
  constexpr std::size_t kNone = ~std::size_t{0};
  Profile& profile = loaded.profile;
  const std::size_t width = profile.value_types.size();
  std::vector<std::size_t> places;  // of each new column: its old number
  for (const ValueType& type : types) {
    const auto place = std::ranges::find(profile.value_types, type);
    places.push_back(place == profile.value_types.end()
                         ? kNone
                         : static_cast<std::size_t>(place - profile.value_types.begin()));
  }
  const auto place = [&](std::vector<std::int64_t>& values, std::size_t rows) {
    std::vector<std::int64_t> placed(rows * types.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const std::size_t column = places[i % types.size()];
      if (column != kNone) placed[i] = values[i / types.size() * width + column];
    }
    values = std::move(placed);
  };
  place(profile.values, profile.samples.size());
  place(profile.moment_values, profile.moments.size());
  const auto chosen = std::ranges::find(places, profile.default_value_type);
  if (!types.empty())
    profile.default_value_type = chosen == places.end()
                                     ? types.size() - 1
                                     : static_cast<std::size_t>(chosen - places.begin());
  // The new types may refer to texts of another profile.
  std::vector<ValueType> kept;
  for (const ValueType& type : types)
    kept.push_back({loaded.Keep(std::string(type.type)), loaded.Keep(std::string(type.unit))});
  profile.value_types = std::move(kept);
}

namespace {

bool IsLevel(std::string_view type) {
  return type.starts_with("inuse_") || type.starts_with("peak_");
}

}  // namespace

void ClearLevels(Profile& profile) {
  const std::size_t width = profile.value_types.size();
  for (std::size_t column = 0; column < width; ++column) {
    if (!IsLevel(profile.value_types[column].type)) continue;
    for (std::size_t i = column; i < profile.values.size(); i += width) profile.values[i] = 0;
    for (std::size_t i = column; i < profile.moment_values.size(); i += width)
      profile.moment_values[i] = 0;
  }
}

std::vector<ValueType> CommonTypes(std::span<const ValueType> types,
                                   std::span<const ValueType> others) {
  std::vector<ValueType> common;
  for (const ValueType& type : types) {
    if (std::ranges::find(others, type) != others.end()) common.push_back(type);
  }
  return common;
}

std::vector<ValueType> AllTypes(std::span<const ValueType> types,
                                std::span<const ValueType> others) {
  std::vector<ValueType> all(types.begin(), types.end());
  for (const ValueType& type : others) {
    if (std::ranges::find(all, type) == all.end()) all.push_back(type);
  }
  return all;
}

}  // namespace strobe::internal
