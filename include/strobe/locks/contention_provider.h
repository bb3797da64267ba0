// ContentionProvider: where threads wait for locks that other threads hold.
#pragma once

#include <array>

#include "strobe/core/value_type.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// Brings the samples of ContentionSampling (contention_sampling.h), which has to be on. The names
// are those of Go's mutex profiles.
struct ContentionProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"contentions", "count"},
                                                        ValueType{"delay", "nanoseconds"}};
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(EventProvider<ContentionProvider>);

}  // namespace strobe
