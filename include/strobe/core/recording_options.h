// RecordingOptions: what a call of BasicProfiler::Record records.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strobe {

// The most calls of Record that can run in a profiler at a time.
inline constexpr std::size_t kMaxRecordings = 4;
// The longest duration of a recording.
inline constexpr std::chrono::milliseconds kMaxRecordingDuration = std::chrono::hours(24);

//   profiler.Record({.duration = std::chrono::seconds(30), .value_types = {"wall"}});
struct RecordingOptions {
  // More than 0, and at most kMaxRecordingDuration.
  std::chrono::milliseconds duration{0};
  // The names of the value types to record: "samples", "cpu", "wall", or those of other providers.
  // Empty means all that are enabled.
  std::vector<std::string> value_types = {};
  // If it becomes true, the recording ends at the next drain of the rings, within about a second,
  // with what it has.
  std::shared_ptr<const std::atomic<bool>> cancelled = {};
};

// InvalidArgument with the field's name for an option out of its range.
absl::Status Validate(const RecordingOptions& options);

}  // namespace strobe
