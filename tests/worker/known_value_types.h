// The value types of the profiles that tests send between a program and its worker.
#pragma once

#include <array>

#include "strobe/core/value_type.h"

namespace strobe::testing {

inline constexpr std::array kKnownValueTypes = {ValueType{"samples", "count"},
                                                ValueType{"cpu", "nanoseconds"},
                                                ValueType{"wall", "nanoseconds"}};

}  // namespace strobe::testing
