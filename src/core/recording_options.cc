#include "strobe/core/recording_options.h"

#include "absl/strings/str_cat.h"

namespace strobe {

absl::Status Validate(const RecordingOptions& options) {
  if (options.duration <= std::chrono::milliseconds(0) ||
      options.duration > kMaxRecordingDuration) {
    return absl::InvalidArgumentError(absl::StrCat("duration: expected 1 to ",
                                                   kMaxRecordingDuration.count(), " ms, got ",
                                                   options.duration.count()));
  }
  // False for what is not a number, too.
  if (options.frequency_hz >= 0 && options.frequency_hz <= kMaxRecordingFrequencyHz)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "frequency_hz: expected 0 to ", kMaxRecordingFrequencyHz, ", got ", options.frequency_hz));
}

}  // namespace strobe
