#include "send.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "backends.h"

namespace strobe::internal {

absl::StatusOr<std::string> SendProfile(const LoadedProfile& loaded,
                                        const Destination& destination) {
  const absl::StatusOr<std::string> none =
      absl::InvalidArgumentError(absl::StrCat("there is no backend ", destination.backend));
  return WithBackend(
      destination.backend, destination.url, none,
      [&]<class E>(const HttpExporter& to, E encoder) -> absl::StatusOr<std::string> {
        HttpExporter exporter = to;
        const absl::StatusOr<std::string> bytes = encoder.Encode(loaded.profile, loaded.symbols);
        if (!bytes.ok()) return bytes.status();
        return exporter.Export({.bytes = *bytes,
                                .file_suffix = E::kFileSuffix,
                                .content_type = E::kContentType,
                                .profile = loaded.profile});
      });
}

}  // namespace strobe::internal
