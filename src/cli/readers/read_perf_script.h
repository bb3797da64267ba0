// ReadPerfScript: the text that `perf script` prints.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "input.h"
#include "profile/loaded_profile.h"

namespace strobe::internal {

// True for a line that only `perf script` prints: the first of a sample, as "program 4242/4243
// [003] 12.345678: 250000 cpu-clock:", or one of another record. Of the fields of -F, the time, or
// a thread and an event, must be there.
bool IsPerfScript(std::string_view line);

// * The value types are samples, and one for each event. Its values are the periods, or the number
//   of samples where periods are not printed. Only a clock with periods is nanoseconds of cpu.
// * Each sample with a time is a moment of perf's clock.
// * Without call chains (perf record without -g), the address in the first line is the stack. A
//   sample without any has the frame "[no stack]".
absl::StatusOr<LoadedProfile> ReadPerfScript(Input& input);

}  // namespace strobe::internal
