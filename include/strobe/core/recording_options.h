// RecordingOptions: what a call of BasicProfiler::Record is to record.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strobe {

// Calls of Record that can be under way in a profiler at a time.
inline constexpr std::size_t kMaxRecordings = 4;
// The longest that one may last.
inline constexpr std::chrono::milliseconds kMaxRecordingDuration = std::chrono::hours(24);

//   profiler.Record({.duration = std::chrono::seconds(30), .value_types = {"wall"}});
struct RecordingOptions {
  // More than 0, and at most kMaxRecordingDuration.
  std::chrono::milliseconds duration{0};
  // The value types that are wanted, by their names: "samples", "cpu", "wall", or those of other
  // providers. All that are enabled, where there is no name.
  std::vector<std::string> value_types = {};
};

// InvalidArgument with the field's name for an option out of its range.
absl::Status Validate(const RecordingOptions& options);

}  // namespace strobe
