#include "strobe/http/otlp_exporter.h"

#include <array>
#include <utility>

#include "../../encode/gzip.h"
#include "../../encode/proto_reader.h"
#include "backend_parts.h"

namespace strobe {
namespace {

using internal::Between;
using internal::FieldRow;
using internal::kEqualPairs;
using internal::kUrl;
using internal::Path;

constexpr std::string_view kProfilesPath = "/v1development/profiles";

struct Compression {
  std::string_view text;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    return value == "gzip" || value == "none";
  }
};
constexpr Compression kCompression{"gzip or none"};
constexpr Between<std::int64_t> kTimeoutMs{0, 600'000, "an integer from 0 to 600000"};
constexpr Path kCertificate{"a path of up to 4095 bytes", true};

// Of each option the general variable comes first, and that for profiles beats it.
constexpr std::array kOtlpTable = {
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::endpoint, kUrl>(
        "OTEL_EXPORTER_OTLP_ENDPOINT", "otlp.endpoint",
        "The collector's base URL; /v1development/profiles is added."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::profiles_endpoint, kUrl>(
        "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "otlp.profiles_endpoint",
        "The whole URL that profiles are sent to."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::headers, kEqualPairs>(
        "OTEL_EXPORTER_OTLP_HEADERS", "otlp.headers",
        "Headers of each request, encoded as in URLs."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::headers, kEqualPairs>(
        "OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "otlp.headers",
        "Headers of each request, encoded as in URLs."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::compression, kCompression>(
        "OTEL_EXPORTER_OTLP_COMPRESSION", "otlp.compression", "How requests are compressed."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::compression, kCompression>(
        "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", "otlp.compression",
        "How requests are compressed."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::timeout_ms, kTimeoutMs>(
        "OTEL_EXPORTER_OTLP_TIMEOUT", "otlp.timeout_ms",
        "How long one export may take; 0 takes http.timeout_s."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::timeout_ms, kTimeoutMs>(
        "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "otlp.timeout_ms",
        "How long one export may take; 0 takes http.timeout_s."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::certificate, kCertificate>(
        "OTEL_EXPORTER_OTLP_CERTIFICATE", "otlp.certificate",
        "Certificates (PEM) to check the collector with."),
    FieldRow<OtlpExporterOptions, &OtlpExporterOptions::certificate, kCertificate>(
        "OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE", "otlp.certificate",
        "Certificates (PEM) to check the collector with."),
};

// ExportProfilesServiceResponse{partial_success=1{rejected_profiles=1, error_message=2}}.
std::int64_t RejectedProfiles(std::string_view body) {
  internal::ProtoReader response(body);
  std::int64_t rejected = 0;
  while (response.Next()) {
    if (response.field() != 1) continue;
    internal::ProtoReader partial(response.content());
    while (partial.Next()) {
      if (partial.field() == 1) rejected = static_cast<std::int64_t>(partial.number());
    }
  }
  return rejected;
}

class OtlpBackend final : public HttpBackend {
 public:
  OtlpBackend(HttpEndpoint endpoint, OtlpOptions encoding, bool is_compressed)
      : endpoint_(std::move(endpoint)),
        encoding_(std::move(encoding)),
        is_compressed_(is_compressed) {}
  [[nodiscard]] std::string_view name() const override { return "otlp"; }
  [[nodiscard]] const HttpEndpoint& endpoint() const override { return endpoint_; }

  [[nodiscard]] absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const override {
    absl::StatusOr<std::string> bytes =
        OtlpEncoder(encoding_).Encode(request.profile, request.symbols);
    if (!bytes.ok()) return bytes.status();
    HttpMessage message{
        .headers = {{.name = "Content-Type", .value = std::string(OtlpEncoder::kContentType)}},
        .body = *std::move(bytes)};
    if (is_compressed_) {
      absl::StatusOr<std::string> compressed = internal::Gzip(message.body);
      if (!compressed.ok()) return compressed.status();
      message.body = *std::move(compressed);
      message.headers.push_back({.name = "Content-Encoding", .value = "gzip"});
    }
    return std::vector<HttpMessage>{std::move(message)};
  }

  // OTLP names the answers after which the same request may be sent again, and no others.
  [[nodiscard]] Judgement Judge(const HttpResponse& response) const override {
    Judgement judgement = JudgeByStatus(response);
    const bool may_pass = response.status == 429 || response.status == 502 ||
                          response.status == 503 || response.status == 504;
    if (judgement.verdict == Verdict::kRetry && !may_pass) {
      return {.verdict = Verdict::kRefused,
              .status = absl::InvalidArgumentError(judgement.status.message())};
    }
    if (judgement.verdict != Verdict::kDelivered) return judgement;
    if (const std::int64_t rejected = RejectedProfiles(response.body); rejected > 0) {
      return {.verdict = Verdict::kRefused,
              .status = absl::InvalidArgumentError(
                  absl::StrCat("the collector rejected ", rejected, " profiles"))};
    }
    return judgement;
  }

 private:
  const HttpEndpoint endpoint_;
  const OtlpOptions encoding_;
  const bool is_compressed_;
};

// OpenTelemetry's own names beat ours.
HttpOptions HttpOptionsOf(const OtlpExporterOptions& options) {
  HttpOptions http = options.http;
  if (*options.timeout_ms > 0) http.timeout_s = static_cast<double>(*options.timeout_ms) / 1e3;
  if (!options.certificate->empty()) http.ca_file = *options.certificate;
  return http;
}

}  // namespace

std::span<const BasicOptionRow<OtlpExporterOptions>> OtlpOptionTable() { return kOtlpTable; }

absl::StatusOr<std::shared_ptr<const HttpBackend>> MakeOtlpBackend(
    const OtlpExporterOptions& options, OtlpOptions encoding) {
  if (absl::Status status = internal::CheckRows(OtlpOptionTable(), options); !status.ok())
    return status;
  const bool has_own = !options.profiles_endpoint->empty();
  absl::StatusOr<HttpEndpoint> endpoint =
      has_own
          ? internal::EndpointOf("otlp.profiles_endpoint", options.profiles_endpoint->Reveal(), "")
          : internal::EndpointOf("otlp.endpoint", options.endpoint->Reveal(), kProfilesPath);
  if (!endpoint.ok()) return endpoint.status();
  const absl::Status status = internal::AddHeaders(*endpoint, "otlp.headers", *options.headers);
  if (!status.ok()) return status;
  return std::make_shared<const OtlpBackend>(*std::move(endpoint), std::move(encoding),
                                             *options.compression == "gzip");
}

std::vector<std::pair<std::string, std::string>> OtlpResource() {
  constexpr const char* kAttributes = "OTEL_RESOURCE_ATTRIBUTES";
  constexpr std::string_view kServiceName = "service.name";
  std::vector<std::pair<std::string, std::string>> resource;
  const std::string text = internal::NativeEnvironment(kAttributes).value_or("");
  const auto pairs = internal::ParsePairs(text, '=');
  bool is_valid = pairs.ok() && internal::IsHeaderValue(text);
  for (std::size_t i = 0; is_valid && i < pairs->size(); ++i) {
    absl::StatusOr<std::string> value = internal::PercentDecoded((*pairs)[i].value);
    is_valid = value.ok();
    if (is_valid) resource.emplace_back((*pairs)[i].key, *std::move(value));
  }
  if (!is_valid) {
    // OpenTelemetry ignores all of them if one is wrong.
    internal::NativeWarn(internal::IgnoredVariable(kAttributes, text, kEqualPairs.text, false));
    resource.clear();
  }
  const std::string service = internal::NativeEnvironment("OTEL_SERVICE_NAME").value_or("");
  if (service.empty()) return resource;
  std::erase_if(resource, [&](const auto& pair) { return pair.first == kServiceName; });
  resource.emplace_back(kServiceName, service);
  return resource;
}

OtlpExporter::OtlpExporter(OtlpExporterOptions given, HttpTools tools)
    : HttpExporter([&] {
        const OtlpExporterOptions options =
            internal::WithEnvironment(std::move(given), OtlpOptionTable());
        return HttpExporter(MakeOtlpBackend(options, {.resource = OtlpResource()}),
                            HttpOptionsOf(options), std::move(tools));
      }()) {}

}  // namespace strobe
