// OtlpExporter: profiles to an OpenTelemetry collector, over HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/http/http_exporter.h"
#include "strobe/http/native_http.h"

namespace strobe {

struct OtlpExporterOptions {
  // A base, to which "/v1development/profiles" is added.
  Option<Secret> endpoint = Option<Secret>::Default{"http://localhost:4318"};
  // The whole URL; beats endpoint.
  Option<Secret> profiles_endpoint = Option<Secret>::Default{{}};
  Option<Secret> headers =
      Option<Secret>::Default{{}};  // "key=value,key=value", encoded as in URLs
  Option<std::string> compression = Option<std::string>::Default{"gzip"};  // or "none"
  // OpenTelemetry's own names for what HttpOptions has. 0, or empty: those of HttpOptions.
  Option<std::int64_t> timeout_ms = Option<std::int64_t>::Default{0};
  Option<std::string> certificate = Option<std::string>::Default{""};
  HttpOptions http = {};
};

std::span<const BasicOptionRow<OtlpExporterOptions>> OtlpOptionTable();

// The body is OtlpEncoder's bytes. InvalidArgument names the option that is wrong.
absl::StatusOr<std::shared_ptr<const HttpBackend>> MakeOtlpBackend(
    const OtlpExporterOptions& options, OtlpOptions encoding = {});

// The attributes of the resource, as OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME name them.
// OTEL_SERVICE_NAME beats a service.name among the former.
std::vector<std::pair<std::string, std::string>> OtlpResource();

//   strobe::BasicProfiler<MyTraits> profiler({}, {.exporter = strobe::OtlpExporter()});
// Code beats the environment, which is read here.
class OtlpExporter : public HttpExporter {
 public:
  explicit OtlpExporter(OtlpExporterOptions options = {}, HttpTools tools = NativeHttpTools());
};

}  // namespace strobe
