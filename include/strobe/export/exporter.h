// The contract of an exporter: encoded bytes -> a file, a server, a test.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"

namespace strobe {

// True if an error of an encoder or an exporter means that this profile can never be delivered: the
// profile is invalid (InvalidArgument; a server's 400 or 415) or too large (OutOfRange; a server's
// 413). All other errors may pass: no room, no permission, no answer.
inline bool RefusesProfile(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kOutOfRange;
}

// One encoded profile on its way out. Valid for the duration of the call.
struct ExportRequest {
  std::string_view bytes;
  std::string_view file_suffix;   // of the encoder
  std::string_view content_type;  // of the encoder
  const Profile& profile;         // what was encoded: program, process id, sequence, times
};

// * Made from `const ExporterOptions&`, or given in Parts and copied for each session. Neither has
//   side effects: nothing is created before the first Export.
// * Export(request) delivers all of the bytes or none, and returns where they went (a path, a URL)
//   or the reason of the failure. It may take long: only the next export waits for it. After an
//   error that RefusesProfile the profile is dropped and counted. After any other error the
//   profiler calls again with the same profile when the next period ends.
// Called on the exporter's thread only.
template <class E>
concept Exporter = requires(E& exporter, const ExportRequest& request) {
  { exporter.Export(request) } -> std::same_as<absl::StatusOr<std::string>>;
};

}  // namespace strobe
