// The servers that the command sends profiles to: those of strobe/http/README.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/otlp_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"

namespace strobe::internal {

inline constexpr std::string_view kBackends = "datadog, pyroscope, parca, otlp, post";

// The exporter of a backend whose address is the member `url` of its options.
template <class Exporter, class Options, class Url>
HttpExporter ExporterTo(const std::string& text, Url Options::*url) {
  Options options;
  if (!text.empty()) options.*url = text;
  return Exporter(std::move(options));
}

// Returns use(exporter, encoder) of the backend `name`; `none` if there is none of that name. An
// empty `url` is where the environment says, or the backend's default. The encoders have two types
// only: a worker has a session of its own for each.
template <class Result, class Use>
Result WithBackend(std::string_view name, const std::string& url, Result none, const Use& use) {
  if (name == "datadog")
    return use(ExporterTo<DatadogExporter>(url, &DatadogOptions::agent_url),
               PprofEncoder(DatadogEncoder()));
  if (name == "pyroscope")
    return use(ExporterTo<PyroscopeExporter>(url, &PyroscopeOptions::url),
               PprofEncoder({.moments = false}));
  if (name == "parca")
    return use(ExporterTo<ParcaExporter>(url, &ParcaOptions::url),
               PprofEncoder({.moments = false}));
  if (name == "post") return use(ExporterTo<PostExporter>(url, &PostOptions::url), PprofEncoder());
  if (name == "otlp") {
    return use(ExporterTo<OtlpExporter>(url, &OtlpExporterOptions::endpoint),
               OtlpEncoder({.resource = OtlpResource()}));
  }
  return none;
}

}  // namespace strobe::internal
