// Amounts: arithmetic that stays in its range.
#pragma once

#include <cstdint>
#include <limits>

namespace strobe {

// a + b, and the largest or smallest number where that overflows.
constexpr std::int64_t SaturatedSum(std::int64_t a, std::int64_t b) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (b > 0 && a > Limits::max() - b) return Limits::max();
  if (b < 0 && a < Limits::min() - b) return Limits::min();
  return a + b;
}

// The value without its sign.
constexpr std::uint64_t Magnitude(std::int64_t value) {
  return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                   : static_cast<std::uint64_t>(value);
}

}  // namespace strobe
