#include "send.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/runtime/session/output_parts.h"
#include "worker/backends.h"

namespace strobe::internal {

absl::StatusOr<std::string> SendProfile(const LoadedProfile& loaded,
                                        const Destination& destination) {
  const std::optional<HttpExporter> exporter =
      BackendExporter(destination.backend, destination.url);
  if (!exporter)
    return absl::InvalidArgumentError(absl::StrCat("there is no backend ", destination.backend));
  OutputParts<PprofEncoder, HttpExporter> output({{.exporter = *exporter}, {}});
  return output.Send(loaded.profile, loaded.symbols);
}

}  // namespace strobe::internal
