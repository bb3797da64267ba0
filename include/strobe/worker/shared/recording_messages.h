// A recording on demand, between a program and its worker: the call, and the profile. Each has a
// connection of its own, so that the others go on meanwhile.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/value_type.h"
#include "strobe/worker/shared/handshake.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What a program asks of its worker: a call of Record, or, if `dumps`, of DumpLast, whose answer
// has an empty profile.
struct RecordingRequest {
  RecordingOptions options;
  bool dumps = false;
};

// The text of a message of kind kRecord, and back. `cancelled` is not in it. InvalidArgument if a
// field is missing or out of its range.
std::string JoinRecording(const RecordingRequest& request);
absl::StatusOr<RecordingRequest> SplitRecording(std::string_view text);

// A profile of more bytes is not sent: ResourceExhausted.
inline constexpr std::size_t kMaxSentProfileBytes = std::size_t{256} << 20;

// In the worker: the answer, kRecorded. A profile's bytes are in sealed memory, whose descriptor
// goes with it.
absl::Status SendProfile(const WorkerSocket& socket, const absl::StatusOr<Profile>& profile);

// A connection: its end here, and the one for the other process.
struct SocketPair {
  WorkerSocket own;
  WorkerSocket other;
};
absl::StatusOr<SocketPair> MakeSocketPair();

// In the program: waits for that answer. When options.cancelled becomes true, a recording with a
// duration is cancelled, and its answer awaited; a call for what was before is awaited no longer:
// Cancelled. Its answer is due within `patience`: DeadlineExceeded.
absl::StatusOr<Profile> AwaitProfile(const WorkerSocket& socket, const RecordingOptions& options,
                                     std::span<const ValueType> known,
                                     std::chrono::nanoseconds patience);

}  // namespace internal
}  // namespace strobe
