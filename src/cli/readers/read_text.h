// Readers of profiles that are text: folded stacks, and what `perf script` prints.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "input.h"
#include "profile/loaded_profile.h"

namespace strobe::internal {

inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

// Lines "root;...;leaf COUNT". The value type is samples, a count. Empty lines and those that begin
// with '#' are left out.
absl::StatusOr<LoadedProfile> ReadFolded(Input& input);

// True if `line` begins a sample: "program 4242/4243 [003] 12.345678: 250000 cpu-clock:".
bool IsPerfSample(std::string_view line);

// The value types are samples and the first event, whose periods are its values; a clock's are
// nanoseconds of cpu. A sample of another event has the label "event". Each sample is a moment of
// perf's clock.
absl::StatusOr<LoadedProfile> ReadPerfScript(Input& input);

}  // namespace strobe::internal
