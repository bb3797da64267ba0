// AllocationProvider: what the program allocates, by the stack that allocates it.
#pragma once

#include <array>

#include "strobe/core/value_type.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// Brings the samples of AllocationSampling (allocation_sampling.h), which has to be on. The names
// are those of pprof's heap profiles.
struct AllocationProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"alloc_objects", "count"},
                                                        ValueType{"alloc_space", "bytes"}};
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(EventProvider<AllocationProvider>);

}  // namespace strobe
