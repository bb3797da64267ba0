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

// Whether an encoder's or an exporter's error says that this profile cannot be delivered, however
// often it is tried: the profile is invalid (InvalidArgument; of a server, 400 or 415) or too large
// (OutOfRange; 413). All other errors are of the way, which may be mended: no room, no permission,
// no answer.
inline bool RefusesProfile(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kOutOfRange;
}

// One encoded profile on its way out. Valid for the duration of the call.
struct ExportRequest {
  std::string_view bytes;
  std::string_view file_suffix;   // of the encoder
  std::string_view content_type;  // of the encoder
  const Profile& profile;         // whose bytes they are: program, process id, sequence, times
};

// * Made from `const ExporterOptions&`, or given in Parts and copied for each session. Neither has
//   side effects: nothing is created before the first Export.
// * Export(request) delivers the bytes whole or not at all, and says where they went (a path, a
//   URL) or why not. It may take long; nothing but the next export waits for it. After an error
//   that RefusesProfile the profile is dropped, and counted; after any other the profiler calls
//   again with the same profile when the next period ends.
// Called on the exporter's thread only.
template <class E>
concept Exporter = requires(E& exporter, const ExportRequest& request) {
  { exporter.Export(request) } -> std::same_as<absl::StatusOr<std::string>>;
};

}  // namespace strobe
