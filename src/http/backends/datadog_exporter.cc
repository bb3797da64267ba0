#include "strobe/http/datadog_exporter.h"

#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "backend_parts.h"
#include "strobe/base/split_mix.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/platform/program_place.h"

namespace strobe {
namespace {

using internal::Between;
using internal::FieldRow;
using internal::JsonString;
using internal::kLine;
using internal::kSwitch;
using internal::kUrl;

constexpr std::string_view kAgentPath = "/profiling/v1/input";
constexpr std::string_view kIntakePath = "/api/v2/profile";
constexpr const char* kAgentSocket = "/var/run/datadog/apm.socket";

// "key:value" parts between commas or spaces.
struct DatadogTags {
  std::string_view text;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    return internal::IsHeaderValue(value) && internal::ParsePairs(WithCommas(value), ':').ok();
  }
  static std::string WithCommas(std::string text) {
    if (text.find(',') != std::string::npos) return text;
    for (char& c : text) c = c == ' ' ? ',' : c;
    return text;
  }
};

constexpr internal::Host kHost{"a host's name or address"};
constexpr internal::Host kSite{"a host's name, such as datadoghq.eu"};
constexpr Between<std::int64_t> kAgentPort{1, 65535, "an integer from 1 to 65535"};
constexpr DatadogTags kTags{"key:value,key:value"};

constexpr std::array kDatadogTable = {
    FieldRow<DatadogOptions, &DatadogOptions::service, kLine>(
        "DD_SERVICE", "datadog.service", "The service; empty takes the program's name."),
    FieldRow<DatadogOptions, &DatadogOptions::environment, kLine>("DD_ENV", "datadog.environment",
                                                                  "The environment (env)."),
    FieldRow<DatadogOptions, &DatadogOptions::version, kLine>("DD_VERSION", "datadog.version",
                                                              "The service's version."),
    FieldRow<DatadogOptions, &DatadogOptions::tags, kTags>("DD_TAGS", "datadog.tags", "More tags."),
    FieldRow<DatadogOptions, &DatadogOptions::host_name, kLine>("DD_HOSTNAME", "datadog.host_name",
                                                                "The host's name."),
    FieldRow<DatadogOptions, &DatadogOptions::runtime_id, kLine>(
        "DD_RUNTIME_ID", "datadog.runtime_id", "The id that the tracer of this process uses."),
    FieldRow<DatadogOptions, &DatadogOptions::agent_url, kUrl>(
        "DD_TRACE_AGENT_URL", "datadog.agent_url", "The agent's URL; beats its host and port."),
    FieldRow<DatadogOptions, &DatadogOptions::agent_host, kHost>(
        "DD_AGENT_HOST", "datadog.agent_host", "The agent's host."),
    FieldRow<DatadogOptions, &DatadogOptions::agent_port, kAgentPort>(
        "DD_TRACE_AGENT_PORT", "datadog.agent_port", "The agent's port."),
    FieldRow<DatadogOptions, &DatadogOptions::agentless, kSwitch>(
        "DD_PROFILING_AGENTLESS", "datadog.agentless", "Whether profiles go to Datadog itself."),
    FieldRow<DatadogOptions, &DatadogOptions::api_key, kLine>("DD_API_KEY", "datadog.api_key",
                                                              "The key for Datadog itself."),
    FieldRow<DatadogOptions, &DatadogOptions::site, kSite>("DD_SITE", "datadog.site",
                                                           "Datadog's site."),
};

// Datadog's names of value types.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTypeNames{
    {{"samples", "cpu-samples"},
     {"cpu", "cpu-time"},
     {"wall", "wall-time"},
     {"alloc_objects", "alloc-samples"},
     {"alloc_space", "alloc-space"},
     {"inuse_objects", "heap-live-samples"},
     {"inuse_space", "heap-space"}}};

std::string TypeName(std::string_view type) {
  for (const auto& [ours, theirs] : kTypeNames) {
    if (type == ours) return std::string(theirs);
  }
  return {};
}

std::string TimeText(std::int64_t unix_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E9SZ", absl::FromUnixNanos(unix_ns),
                          absl::UTCTimeZone());
}

// Scrambles the bits of a word.
std::uint64_t Scrambled(std::uint64_t word) { return internal::SplitMix64(word); }

// A random UUID (version 4) of the process: a fork's child has another one.
std::string RuntimeId(const DatadogProcess& process, std::uint64_t process_id) {
  const std::uint64_t high = (Scrambled(process.seed[0] ^ process_id) & ~0xF000ull) | 0x4000;
  const std::uint64_t low = (Scrambled(process.seed[1] + process_id) & ~(3ull << 62)) | 1ull << 63;
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, high >> 16 & 0xFFFF,
                         high & 0xFFFF, low >> 48, low & 0xFFFFFFFFFFFF);
}

// A value of a tag: a comma would end it.
std::string TagValue(std::string_view text) {
  std::string value(text);
  for (char& c : value) c = c == ',' ? '_' : c;
  return value;
}

class DatadogBackend final : public HttpBackend {
 public:
  DatadogBackend(HttpEndpoint endpoint, DatadogOptions options, DatadogProcess process)
      : endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        process_(std::move(process)) {}
  [[nodiscard]] std::string_view name() const override { return "datadog"; }
  [[nodiscard]] const HttpEndpoint& endpoint() const override { return endpoint_; }

  [[nodiscard]] absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const override;

 private:
  [[nodiscard]] std::string Tags(const Profile& profile) const;
  [[nodiscard]] std::string Event(const Profile& profile) const;

  const HttpEndpoint endpoint_;
  const DatadogOptions options_;
  const DatadogProcess process_;
};

std::string DatadogBackend::Tags(const Profile& profile) const {
  std::string tags;
  const auto add = [&tags](std::string_view key, std::string_view value) {
    if (!value.empty())
      absl::StrAppend(&tags, tags.empty() ? "" : ",", std::string(key), ":", TagValue(value));
  };
  add("language", "native");
  add("service", internal::FirstOf(*options_.service, profile.program));
  add("env", *options_.environment);
  add("version", *options_.version);
  add("host", internal::FirstOf(*options_.host_name, process_.host));
  add("runtime-id", options_.runtime_id->empty() ? RuntimeId(process_, profile.process_id)
                                                 : *options_.runtime_id);
  add("profiler_version", internal::kStrobeVersion);
  add("profile_seq", absl::StrCat(profile.sequence));
  add("process_id", absl::StrCat(profile.process_id));
  const auto own = internal::ParsePairs(DatadogTags::WithCommas(*options_.tags), ':');
  for (const internal::KeyValue& tag : internal::WithMachine(
           own.value_or(std::vector<internal::KeyValue>()), profile.machine, MachinePart::kAll))
    add(tag.key, tag.value);
  return tags;
}

std::string DatadogBackend::Event(const Profile& profile) const {
  return absl::StrCat("{\"attachments\":[\"profile.pprof\"],\"tags_profiler\":",
                      JsonString(Tags(profile)), ",\"start\":\"", TimeText(profile.time_ns),
                      "\",\"end\":\"", TimeText(profile.time_ns + profile.duration_ns),
                      "\",\"family\":\"native\",\"version\":\"4\",\"endpoint_counts\":null,",
                      "\"internal\":{},\"info\":{\"profiler\":{\"name\":\"strobe\",\"version\":\"",
                      std::string(internal::kStrobeVersion), "\"}}}");
}

absl::StatusOr<std::vector<HttpMessage>> DatadogBackend::Build(const ExportRequest& request) const {
  PprofPart part;
  for (const ValueType& type : request.profile.value_types) {
    part.columns.push_back(part.columns.size());
    part.names.push_back(TypeName(type.type));
  }
  PprofEncoder encoder({.labels = PprofLabels::kDatadog, .part = std::move(part)});
  const absl::StatusOr<std::string> profile = encoder.Encode(request.profile, request.symbols);
  if (!profile.ok()) return profile.status();
  // A text that does not occur in the parts.
  std::string boundary = "strobe-boundary";
  while (profile->find(boundary) != std::string::npos)
    boundary = absl::StrCat("strobe-boundary-", Scrambled(boundary.size() + profile->size()), "-",
                            boundary.size());
  const std::string dashes = "--" + boundary;
  HttpMessage message{
      .headers = {{.name = "Content-Type", .value = "multipart/form-data; boundary=" + boundary}},
      .body = absl::StrCat(
          dashes, "\r\nContent-Disposition: form-data; name=\"event\"; filename=\"event.json\"\r\n",
          "Content-Type: application/json\r\n\r\n", Event(request.profile), "\r\n", dashes,
          "\r\nContent-Disposition: form-data; name=\"profile.pprof\"; "
          "filename=\"profile.pprof\"\r\n\r\n",
          *profile, "\r\n", dashes, "--\r\n")};
  return std::vector<HttpMessage>{std::move(message)};
}

absl::StatusOr<HttpEndpoint> AgentEndpoint(const DatadogOptions& options) {
  if (!options.agent_url->empty())
    return internal::EndpointOf("datadog.agent_url (DD_TRACE_AGENT_URL)", *options.agent_url,
                                kAgentPath);
  const bool is_default = *options.agent_host == "localhost" && *options.agent_port == 8126;
  std::error_code error;
  if (is_default && std::filesystem::is_socket(kAgentSocket, error))
    return internal::EndpointOf("", absl::StrCat("unix://", kAgentSocket), kAgentPath);
  const bool is_v6 =
      options.agent_host->find(':') != std::string::npos && !options.agent_host->starts_with('[');
  return internal::EndpointOf("datadog.agent_host (DD_AGENT_HOST)",
                              absl::StrCat("http://", is_v6 ? "[" : "", *options.agent_host,
                                           is_v6 ? "]" : "", ":", *options.agent_port),
                              kAgentPath);
}

}  // namespace

std::span<const BasicOptionRow<DatadogOptions>> DatadogOptionTable() { return kDatadogTable; }

DatadogProcess ReadDatadogProcess() {
  std::random_device random;
  const auto word = [&random] { return std::uint64_t{random()} << 32 | random(); };
  return {.container_id = internal::ContainerId(),
          .host = internal::HostName(),
          .seed = {word(), word()}};
}

absl::StatusOr<std::shared_ptr<const HttpBackend>> MakeDatadogBackend(
    const DatadogOptions& options, const DatadogProcess& process) {
  if (absl::Status status = internal::CheckRows(DatadogOptionTable(), options); !status.ok())
    return status;
  if (*options.agentless && options.api_key->empty())
    return absl::InvalidArgumentError("datadog.agentless needs datadog.api_key (DD_API_KEY)");
  absl::StatusOr<HttpEndpoint> endpoint =
      *options.agentless ? internal::EndpointOf(
                               "datadog.site (DD_SITE)",
                               absl::StrCat("https://intake.profile.", *options.site), kIntakePath)
                         : AgentEndpoint(options);
  if (!endpoint.ok()) return endpoint.status();
  std::vector<HttpHeader>& headers = endpoint->headers;
  headers.push_back({.name = "DD-EVP-ORIGIN", .value = "strobe"});
  headers.push_back(
      {.name = "DD-EVP-ORIGIN-VERSION", .value = std::string(internal::kStrobeVersion)});
  headers.push_back({.name = "Connection", .value = "close"});
  if (!process.container_id.empty())
    headers.push_back({.name = "Datadog-Container-Id", .value = process.container_id});
  if (*options.agentless)
    headers.push_back(
        {.name = "DD-API-KEY", .value = options.api_key->Reveal(), .is_secret = true});
  return std::make_shared<const DatadogBackend>(*std::move(endpoint), options, process);
}

ProfilerOptions DatadogProfilerOptions(ProfilerOptions options) {
  constexpr Between<double> kPeriod{1, 3600, "a number from 1 to 3600"};
  const auto apply = [](const char* variable, auto& option, const auto& accepted) {
    const std::optional<std::string> text = internal::NativeEnvironment(variable);
    if (text && !internal::SetFromText(option, *text, accepted))
      internal::NativeWarn(internal::IgnoredVariable(variable, *text, accepted.text, false));
  };
  apply("DD_PROFILING_ENABLED", options.enabled, kSwitch);
  apply("DD_PROFILING_UPLOAD_PERIOD", options.exporter.period_s, kPeriod);
  return options;
}

DatadogExporter::DatadogExporter(DatadogOptions given, HttpTools tools)
    : HttpExporter([&] {
        const DatadogOptions options =
            internal::WithEnvironment(std::move(given), DatadogOptionTable());
        return HttpExporter(MakeDatadogBackend(options, ReadDatadogProcess()), options.http,
                            std::move(tools));
      }()) {}

}  // namespace strobe
