#include "strobe/http/pyroscope_exporter.h"

#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "backend_parts.h"
#include "strobe/encode/pprof_encoder.h"

namespace strobe {
namespace {

using internal::Between;
using internal::FieldRow;
using internal::kEqualPairs;
using internal::KeyValue;
using internal::kLine;
using internal::kUrl;

constexpr std::array kPyroscopeTable = {
    FieldRow<PyroscopeOptions, &PyroscopeOptions::url, kUrl>(
        "PYROSCOPE_SERVER_ADDRESS", "pyroscope.url", "The Pyroscope server."),
    FieldRow<PyroscopeOptions, &PyroscopeOptions::application, kLine>(
        "PYROSCOPE_APPLICATION_NAME", "pyroscope.application",
        "The application's name; empty takes the program's."),
    FieldRow<PyroscopeOptions, &PyroscopeOptions::labels, kEqualPairs>(
        "PYROSCOPE_LABELS", "pyroscope.labels", "Labels of the application."),
    FieldRow<PyroscopeOptions, &PyroscopeOptions::user, kLine>(
        "PYROSCOPE_BASIC_AUTH_USER", "pyroscope.user", "The user of basic authentication."),
    FieldRow<PyroscopeOptions, &PyroscopeOptions::password, kLine>(
        "PYROSCOPE_BASIC_AUTH_PASSWORD", "pyroscope.password",
        "The password of basic authentication."),
    FieldRow<PyroscopeOptions, &PyroscopeOptions::token, kLine>(
        "PYROSCOPE_AUTH_TOKEN", "pyroscope.token", "A bearer token."),
    FieldRow<PyroscopeOptions, &PyroscopeOptions::tenant, kLine>(
        "PYROSCOPE_TENANT_ID", "pyroscope.tenant", "The tenant (X-Scope-OrgID)."),
};

// Pyroscope names a whole profile by its value types, so types of two families cannot share one.
std::string_view FamilyOf(std::string_view type) {
  if (type == "wall" || type == "off_cpu") return "wall";
  for (const std::string_view memory : {"alloc_", "inuse_", "peak_"})
    if (type.starts_with(memory)) return "memory";
  if (type.starts_with("contentions") || type.starts_with("delay") || type.starts_with("lock"))
    return "mutex";
  return "cpu";
}

// `text` without the characters that end a name or a value in Pyroscope's syntax.
std::string PlainText(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (std::string_view("{},=\" \t\r\n;").find(c) != std::string_view::npos) c = '_';
  }
  return plain;
}

class PyroscopeBackend final : public HttpBackend {
 public:
  PyroscopeBackend(HttpEndpoint endpoint, std::string application, std::vector<KeyValue> labels)
      : endpoint_(std::move(endpoint)),
        application_(std::move(application)),
        labels_(std::move(labels)) {}
  [[nodiscard]] std::string_view name() const override { return "pyroscope"; }
  [[nodiscard]] const HttpEndpoint& endpoint() const override { return endpoint_; }

  [[nodiscard]] absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const override {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(request.profile, request.symbols);
    if (!view.ok()) return view.status();
    std::map<std::string_view, PprofPart> parts;
    const std::vector<ValueType>& types = request.profile.value_types;
    for (std::size_t i = 0; i < types.size(); ++i)
      parts[FamilyOf(types[i].type)].columns.push_back(i);
    std::vector<HttpMessage> messages;
    for (const auto& [family, part] : parts) {
      // A period without samples is one request, too: the server sees that the program runs.
      const bool is_needed =
          part.HasSamplesOf(request.profile) || (messages.empty() && family == "cpu");
      if (!is_needed && parts.size() > 1) continue;
      absl::StatusOr<std::string> bytes =
          PprofEncoder({.moments = false, .part = part}).Encode(*view);
      if (!bytes.ok()) return bytes.status();
      messages.push_back(
          {.query = Query(request.profile),
           .headers = {{.name = "Content-Type", .value = "application/octet-stream"}},
           .body = *std::move(bytes)});
    }
    return messages;
  }

  // Pyroscope answers 422 also if one of its own parts does not answer.
  [[nodiscard]] Judgement Judge(const HttpResponse& response) const override {
    Judgement judgement = JudgeByStatus(response);
    const bool may_pass = response.body.find("code = Unavailable") != std::string::npos ||
                          response.body.find("code = DeadlineExceeded") != std::string::npos;
    if (judgement.verdict == Verdict::kRefused && may_pass) {
      return {.verdict = Verdict::kRetry,
              .status = absl::UnavailableError(judgement.status.message())};
    }
    return judgement;
  }

 private:
  [[nodiscard]] std::string Query(const Profile& profile) const {
    const std::int64_t end_ns = profile.time_ns + profile.duration_ns;
    std::string labels;
    for (const KeyValue& label :
         internal::WithMachine(labels_, profile.machine, MachinePart::kShared)) {
      absl::StrAppend(&labels, labels.empty() ? "" : ",", internal::LabelName(label.key), "=",
                      PlainText(label.value));
    }
    const std::string application =
        PlainText(internal::FirstOf(application_, profile.program)) + "{" + labels + "}";
    constexpr std::int64_t kNsPerSecond = 1'000'000'000;
    const std::int64_t rate_hz = profile.period > 0 ? kNsPerSecond / profile.period : 100;
    return absl::StrCat("name=", internal::PercentEncoded(application),
                        "&from=", profile.time_ns / kNsPerSecond,
                        "&until=", (end_ns + kNsPerSecond - 1) / kNsPerSecond,
                        "&format=pprof&spyName=strobe&sampleRate=", rate_hz);
  }

  const HttpEndpoint endpoint_;
  const std::string application_;
  const std::vector<KeyValue> labels_;
};

}  // namespace

std::span<const BasicOptionRow<PyroscopeOptions>> PyroscopeOptionTable() { return kPyroscopeTable; }

absl::StatusOr<std::shared_ptr<const HttpBackend>> MakePyroscopeBackend(
    const PyroscopeOptions& options) {
  if (absl::Status status = internal::CheckRows(PyroscopeOptionTable(), options); !status.ok())
    return status;
  absl::StatusOr<HttpEndpoint> endpoint = internal::EndpointOf(
      "pyroscope.url (PYROSCOPE_SERVER_ADDRESS)", options.url->Reveal(), "/ingest");
  if (!endpoint.ok()) return endpoint.status();
  if (!options.user->empty() || !options.password->empty()) {
    endpoint->headers.push_back(
        {.name = "Authorization",
         .value = "Basic " + internal::Base64(*options.user + ":" + options.password->Reveal()),
         .is_secret = true});
  }
  internal::AddBearer(*endpoint, *options.token);
  if (!options.tenant->empty())
    endpoint->headers.push_back({.name = "X-Scope-OrgID", .value = *options.tenant});
  absl::StatusOr<std::vector<KeyValue>> labels = internal::ParsePairs(*options.labels, '=');
  if (!labels.ok()) return labels.status();
  return std::make_shared<const PyroscopeBackend>(*std::move(endpoint), *options.application,
                                                  *std::move(labels));
}

ProfilerOptions PyroscopeProfilerOptions(ProfilerOptions options) {
  constexpr double kPeriodS = 10;
  constexpr Between<double> kPeriod{1, 3600, "a number from 1 to 3600"};
  constexpr const char* kVariable = "PYROSCOPE_UPLOAD_INTERVAL";
  if (!options.exporter.period_s.is_set())
    options.exporter.period_s = Option<double>::Default{kPeriodS};
  const std::optional<std::string> text = internal::NativeEnvironment(kVariable);
  // "10" or "10s".
  std::string number = text.value_or("");
  if (number.ends_with('s')) number.pop_back();
  if (text && !internal::SetFromText(options.exporter.period_s, number, kPeriod))
    internal::NativeWarn(internal::IgnoredVariable(kVariable, *text, kPeriod.text, false));
  return options;
}

PyroscopeExporter::PyroscopeExporter(PyroscopeOptions given, HttpTools tools)
    : HttpExporter([&] {
        const PyroscopeOptions options =
            internal::WithEnvironment(std::move(given), PyroscopeOptionTable());
        return HttpExporter(MakePyroscopeBackend(options), options.http, std::move(tools));
      }()) {}

}  // namespace strobe
