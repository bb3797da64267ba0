#pragma once

#include <string_view>

namespace strobe {

// What one column of a profile measures, in pprof's terms: {"cpu", "nanoseconds"}. Both strings are
// constants of a provider, with static storage.
struct ValueType {
  std::string_view type;
  std::string_view unit;

  friend constexpr bool operator==(const ValueType&, const ValueType&) = default;
};

}  // namespace strobe
