// The servers that the command sends profiles to: those of strobe/http/README.md.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/otlp_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"

namespace strobe::internal {

// The options that have the member.
template <class Options, class Value>
Options OptionsWith(Value Options::*member);

// The exporter of a backend whose address is the member `kUrl` of its options. An empty `url` is
// where the environment says, or the backend's default.
template <class Exporter, auto kUrl>
HttpExporter ExporterTo(const std::string& url) {
  decltype(OptionsWith(kUrl)) options;
  if (!url.empty()) options.*kUrl = url;
  return Exporter(std::move(options));
}

struct Backend {
  std::string_view name;
  HttpExporter (*exporter)(const std::string& url);
};
inline constexpr std::array<Backend, 5> kBackends{
    {{"datadog", ExporterTo<DatadogExporter, &DatadogOptions::agent_url>},
     {"pyroscope", ExporterTo<PyroscopeExporter, &PyroscopeOptions::url>},
     {"parca", ExporterTo<ParcaExporter, &ParcaOptions::url>},
     {"otlp", ExporterTo<OtlpExporter, &OtlpExporterOptions::endpoint>},
     {"post", ExporterTo<PostExporter, &PostOptions::url>}}};

// The exporter of the backend `name`; empty if there is none of that name.
inline std::optional<HttpExporter> BackendExporter(std::string_view name, const std::string& url) {
  const auto* const found = std::ranges::find(kBackends, name, &Backend::name);
  if (found == kBackends.end()) return std::nullopt;
  return found->exporter(url);
}

// "datadog, pyroscope, ...".
inline std::string BackendNames() {
  return absl::StrJoin(kBackends, ", ", [](std::string* text, const Backend& backend) {
    text->append(backend.name);
  });
}

}  // namespace strobe::internal
