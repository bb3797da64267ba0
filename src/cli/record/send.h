// SendProfile: a profile to a server.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "profile/loaded_profile.h"

namespace strobe::internal {

// The servers are those of strobe/http/README.md.
struct Destination {
  std::string backend;  // "datadog", "pyroscope", "parca", "otlp" or "post" (any URL)
  // "post" needs one. Empty: where the environment says, or the backend's default.
  std::string url;
};

// Returns when the server has the profile, or after the tries and the time that the environment
// allows (STROBE_HTTP_TIMEOUT_S, STROBE_HTTP_ATTEMPTS). Returns where it is. Unimplemented if the
// command was built without the library for HTTP.
absl::StatusOr<std::string> SendProfile(const LoadedProfile& loaded,
                                        const Destination& destination);

}  // namespace strobe::internal
