// What the environment says to a preloaded library.
#pragma once

#include <optional>

#include "strobe/core/options.h"

namespace strobe::internal {

// STROBE_RECORD_X, which `strobe record` sets, is STROBE_X for the preloaded library alone: a
// program that has a profiler of its own does not read it. It beats STROBE_X. Returns nothing if no
// variable of either name asks for a session, one forbids it, or the recording is over.
std::optional<ProfilerOptions> PreloadOptions();

}  // namespace strobe::internal
