#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "send.h"

namespace strobe::internal {

absl::StatusOr<std::string> SendProfile(const LoadedProfile& /*loaded*/,
                                        const Destination& destination) {
  return absl::UnimplementedError(
      absl::StrCat("nothing is sent to ", destination.backend,
                   ": this strobe was built without the library for HTTP, which needs libcurl "
                   "(libcurl4-openssl-dev)"));
}

}  // namespace strobe::internal
