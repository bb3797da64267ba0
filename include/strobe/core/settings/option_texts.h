// OptionTexts: what value each option has, and who has given it, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/core/options.h"
#include "strobe/core/settings/option_rows.h"

namespace strobe::internal {

// Who has given the value of an option.
enum class ValueSource : std::uint8_t {
  kDefault,      // of the library, or of the profiler's traits
  kEnvironment,  // the option's variable
  kCode,
};
// Of the option `row` of options that ApplyEnvironment was called for. `environment` is what it was
// called with.
ValueSource SourceOf(const OptionRow& row, const ProfilerOptions& options,
                     const Environment& environment);

// A line for each option that code or the environment has set: "sampling.cpu_frequency_hz=250 by
// code", "exporter.period_s=5 by STROBE_EXPORT_PERIOD_S". A line also names the variable that code
// beats.
std::vector<std::string> GivenOptions(const ProfilerOptions& options,
                                      const Environment& environment);

}  // namespace strobe::internal
