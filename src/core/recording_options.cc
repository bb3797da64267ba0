#include "strobe/core/recording_options.h"

#include "absl/strings/str_cat.h"

namespace strobe {
namespace {

absl::Status CheckTime(const char* name, std::chrono::milliseconds time) {
  if (time > std::chrono::milliseconds(0) && time <= kMaxRecordingDuration) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": expected 1 to ", kMaxRecordingDuration.count(), " ms, got ", time.count()));
}

absl::Status CheckLast(const RecordingOptions& options) {
  if (options.duration != std::chrono::milliseconds(0))
    return absl::InvalidArgumentError("duration and last: expected one of them");
  if (options.frequency_hz != 0)
    return absl::InvalidArgumentError("frequency_hz: samples of the past have the rate they had");
  return CheckTime("last", options.last);
}

}  // namespace

absl::Status Validate(const RecordingOptions& options) {
  if (options.last != std::chrono::milliseconds(0)) return CheckLast(options);
  if (absl::Status status = CheckTime("duration", options.duration); !status.ok()) return status;
  // False for what is not a number, too.
  if (options.frequency_hz >= 0 && options.frequency_hz <= kMaxRecordingFrequencyHz)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "frequency_hz: expected 0 to ", kMaxRecordingFrequencyHz, ", got ", options.frequency_hz));
}

}  // namespace strobe
