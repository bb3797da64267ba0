// ConditionProvider: where threads wait for conditions that other threads bring about.
#pragma once

#include <array>

#include "strobe/core/value_type.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// Brings the waits that ContentionSampling (contention_sampling.h) is told of, which has to be on.
// Apart from contentions: a thread that has nothing to do waits for a condition, and no lock is to
// blame.
struct ConditionProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::array<ValueType, 2> kValueTypes{
      ValueType{"condition_waits", "count"}, ValueType{"condition_delay", "nanoseconds"}};
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(EventProvider<ConditionProvider>);

}  // namespace strobe
