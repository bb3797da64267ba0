#include "strobe/core/recording_options.h"

#include "absl/strings/str_cat.h"

namespace strobe {

absl::Status Validate(const RecordingOptions& options) {
  if (options.duration > std::chrono::milliseconds(0) && options.duration <= kMaxRecordingDuration)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("duration: expected 1 to ",
                                                 kMaxRecordingDuration.count(), " ms, got ",
                                                 options.duration.count()));
}

}  // namespace strobe
