// OutputParts: the encoder and the exporter of each output of one session.
#pragma once

#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/export/exporter.h"
#include "strobe/export/output_list.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The encoder and the exporter of one output.
template <class E, class X>
struct OutputParts {
  struct Source {
    const Output<E, X>& given;
    const ExporterOptions& options;
  };
  explicit OutputParts(const Source& source)
      : encoder(source.given.encoder.Make()),
        exporter(source.given.exporter.Make(source.options)) {}

  // Why the exporter cannot deliver: see CheckingExporter.
  absl::Status Check() {
    if constexpr (CheckingExporter<X>) return exporter.Check();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Send(const Profile& profile, const Symbols& symbols,
                                   ExportDeadline deadline = {}, bool has_newer = false) {
    absl::StatusOr<std::string> bytes = "";
    if (!TakesProfiles()) bytes = encoder.Encode(profile, symbols);
    if (!bytes.ok()) return bytes.status();
    return exporter.Export({.bytes = *bytes,
                            .file_suffix = E::kFileSuffix,
                            .content_type = E::kContentType,
                            .profile = profile,
                            .symbols = symbols,
                            .deadline = deadline,
                            .has_newer = has_newer});
  }

  [[nodiscard]] bool TakesProfiles() const {
    if constexpr (ProfileTakingExporter<X>) return exporter.TakesProfiles();
    return false;
  }

  E encoder;
  X exporter;
};

// Constructs each part in place, because a part may be immovable.
template <class... E, class... X>
std::tuple<OutputParts<E, X>...> MakeOutputs(const std::tuple<Output<E, X>...>& given,
                                             const ExporterOptions& options) {
  return std::apply(
      [&](const auto&... output) {
        return std::tuple<OutputParts<E, X>...>(
            typename OutputParts<E, X>::Source{output, options}...);
      },
      given);
}

}  // namespace internal
}  // namespace strobe
