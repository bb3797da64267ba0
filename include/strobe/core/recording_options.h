// RecordingOptions: what a call of BasicProfiler::Record records.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strobe {

// The most calls of Record that can run in a profiler at a time.
inline constexpr std::size_t kMaxRecordings = 4;
// The longest duration of a recording.
inline constexpr std::chrono::milliseconds kMaxRecordingDuration = std::chrono::hours(24);
// What is kept of the past is in this many slices of keep.last_s, and the slice under way.
inline constexpr std::int64_t kKeptSlices = 30;
// The highest rate that a recording can ask for.
inline constexpr double kMaxRecordingFrequencyHz = 10'000;

//   profiler.Record({.duration = std::chrono::seconds(30), .value_types = {"wall"}});
struct RecordingOptions {
  // More than 0 (0 with `last`), and at most kMaxRecordingDuration.
  std::chrono::milliseconds duration{0};
  // Instead of a duration: the time before the call. Returns at once what the profiler has kept of
  // it, by whole slices (see kKeptSlices): so the profile may begin up to a slice earlier, and
  // Profile::time_ns says when. Needs keep.last_s. Profile::window says what is missing if less is
  // kept. At most kMaxRecordingDuration.
  std::chrono::milliseconds last{0};
  // The names of the value types to record: "samples", "cpu", "wall", or those of other providers.
  // Empty means all that are enabled.
  std::vector<std::string> value_types = {};
  // The rate of samples that the recording asks for, from 0 to kMaxRecordingFrequencyHz; 0 means
  // the profiler's. It is a rate of the clock behind the first of the value types. While the
  // recording lasts, the profiler samples at the highest rate that a recording or its own options
  // ask for, within sampling.max_overhead. So no recording has fewer samples because of another
  // one. Amounts are by the clocks at any rate.
  double frequency_hz = 0;
  // If it becomes true, the recording ends at the next drain of the rings, within about a second,
  // with what it has.
  std::shared_ptr<const std::atomic<bool>> cancelled = {};
};

// InvalidArgument with the field's name for an option out of its range.
absl::Status Validate(const RecordingOptions& options);

}  // namespace strobe
