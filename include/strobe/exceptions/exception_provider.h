// ExceptionProvider: which exceptions the program throws, and where.
#pragma once

#include <array>
#include <string_view>

#include "strobe/core/value_type.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// The key of the label that says what type was thrown.
inline constexpr std::string_view kExceptionLabel = "exception";

// Brings the throws that ExceptionSampling (exception_sampling.h) sees, which has to be on.
struct ExceptionProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"exceptions", "count"}};
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(EventProvider<ExceptionProvider>);

}  // namespace strobe
