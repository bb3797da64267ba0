#include "send.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/otlp_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"

namespace strobe::internal {
namespace {

template <class E>
absl::StatusOr<std::string> SendBy(HttpExporter exporter, E encoder, const LoadedProfile& loaded) {
  const absl::StatusOr<std::string> bytes = encoder.Encode(loaded.profile, loaded.symbols);
  if (!bytes.ok()) return bytes.status();
  return exporter.Export({.bytes = *bytes,
                          .file_suffix = E::kFileSuffix,
                          .content_type = E::kContentType,
                          .profile = loaded.profile});
}

// The exporter of a backend whose address is the member `url` of its options.
template <class Exporter, class Options, class Url>
HttpExporter To(const std::string& text, Url Options::*url) {
  Options options;
  if (!text.empty()) options.*url = text;
  return Exporter(std::move(options));
}

}  // namespace

absl::StatusOr<std::string> SendProfile(const LoadedProfile& loaded,
                                        const Destination& destination) {
  const auto& [backend, url] = destination;
  if (backend == "http")
    return SendBy(To<PostExporter>(url, &PostOptions::url), PprofEncoder(), loaded);
  if (backend == "datadog")
    return SendBy(To<DatadogExporter>(url, &DatadogOptions::agent_url), DatadogEncoder(), loaded);
  if (backend == "pyroscope")
    return SendBy(To<PyroscopeExporter>(url, &PyroscopeOptions::url), PprofEncoder(), loaded);
  if (backend == "parca")
    return SendBy(To<ParcaExporter>(url, &ParcaOptions::url), PprofEncoder(), loaded);
  if (backend == "otlp") {
    return SendBy(To<OtlpExporter>(url, &OtlpExporterOptions::endpoint),
                  OtlpEncoder({.resource = OtlpResource()}), loaded);
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no backend ", backend));
}

}  // namespace strobe::internal
