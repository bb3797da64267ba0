#pragma once

#include <string_view>

namespace strobe {

// What one column of a profile's values measures, in pprof's words: {"cpu", "nanoseconds"}. Both
// strings have static storage: they are constants of a provider.
struct ValueType {
  std::string_view type;
  std::string_view unit;

  friend constexpr bool operator==(const ValueType&, const ValueType&) = default;
};

}  // namespace strobe
