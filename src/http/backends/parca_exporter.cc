#include "strobe/http/parca_exporter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "backend_parts.h"
#include "strobe/encode/pprof_encoder.h"

namespace strobe {
namespace {

using internal::FieldRow;
using internal::JsonString;
using internal::kEqualPairs;
using internal::KeyValue;
using internal::kLine;
using internal::kUrl;

constexpr std::array kParcaTable = {
    FieldRow<ParcaOptions, &ParcaOptions::url, kUrl>("STROBE_PARCA_URL", "parca.url",
                                                     "The Parca server."),
    FieldRow<ParcaOptions, &ParcaOptions::job, kLine>(
        "STROBE_PARCA_JOB", "parca.job", "The label job; empty takes the program's name."),
    FieldRow<ParcaOptions, &ParcaOptions::labels, kEqualPairs>(
        "STROBE_PARCA_LABELS", "parca.labels", "More labels of each series."),
    FieldRow<ParcaOptions, &ParcaOptions::token, kLine>("STROBE_PARCA_TOKEN", "parca.token",
                                                        "A bearer token."),
};

class ParcaBackend final : public HttpBackend {
 public:
  ParcaBackend(HttpEndpoint endpoint, std::string job, std::vector<KeyValue> labels)
      : endpoint_(std::move(endpoint)), job_(std::move(job)), labels_(std::move(labels)) {}
  [[nodiscard]] std::string_view name() const override { return "parca"; }
  [[nodiscard]] const HttpEndpoint& endpoint() const override { return endpoint_; }

  [[nodiscard]] absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const override {
    const Profile& profile = request.profile;
    const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, request.symbols);
    if (!view.ok()) return view.status();
    PprofPart part;
    for (std::size_t i = 0; i < profile.value_types.size(); ++i) part.columns.push_back(i);
    std::string series;
    std::set<std::string> names;
    for (std::size_t i = 0; i < profile.samples.size(); ++i)
      names.insert(profile.Labels(i).Text(kThreadNameLabel));
    std::vector<std::string> threads(names.begin(), names.end());
    if (threads.empty()) threads.emplace_back();  // a period without samples is one, too
    const std::size_t own =
        threads.size() <= kMaxParcaSeries ? threads.size() : kMaxParcaSeries - 1;
    for (std::size_t i = 0; i < own; ++i) {
      part.threads = {{threads[i]}};
      if (absl::Status status = AddSeries(*view, part, threads[i], series); !status.ok())
        return status;
    }
    if (own < threads.size()) {
      part.threads = {{threads.begin() + static_cast<std::ptrdiff_t>(own), threads.end()}};
      if (absl::Status status = AddSeries(*view, part, kOtherThreads, series); !status.ok())
        return status;
    }
    return std::vector<HttpMessage>{
        {.headers = {{.name = "Content-Type", .value = "application/json"}},
         .body = absl::StrCat("{\"series\":[", series, "],\"normalized\":false}")}};
  }

  // Parca answers paths that it does not know with its web page.
  [[nodiscard]] Judgement Judge(const HttpResponse& response) const override {
    Judgement judgement = JudgeByStatus(response);
    if (judgement.verdict == Verdict::kDelivered &&
        !response.content_type.starts_with("application/json")) {
      return {.verdict = Verdict::kStop,
              .status = absl::NotFoundError(absl::StrCat("the server answered ", response.status,
                                                         ", but with \"", response.content_type,
                                                         "\": it is not Parca's API"))};
    }
    return judgement;
  }

 private:
  // Appends one series.
  absl::Status AddSeries(const ProfileView& view, const PprofPart& part, std::string_view thread,
                         std::string& series) const {
    const absl::StatusOr<std::string> bytes =
        PprofEncoder({.moments = false, .part = part}).Encode(view);
    if (!bytes.ok()) return bytes.status();
    std::string labels;
    const auto add = [&labels](std::string_view name, std::string_view value) {
      absl::StrAppend(&labels, labels.empty() ? "" : ",", "{\"name\":", JsonString(name),
                      ",\"value\":", JsonString(value), "}");
    };
    add("__name__", "process_cpu");
    add("job", internal::FirstOf(job_, view.profile().program));
    for (const KeyValue& label :
         internal::WithMachine(labels_, view.profile().machine, MachinePart::kShared))
      add(internal::LabelName(label.key), label.value);
    if (!thread.empty()) add("thread_name", thread);
    absl::StrAppend(&series, series.empty() ? "" : ",", "{\"labels\":{\"labels\":[", labels,
                    "]},\"samples\":[{\"rawProfile\":\"", internal::Base64(*bytes), "\"}]}");
    return absl::OkStatus();
  }

  const HttpEndpoint endpoint_;
  const std::string job_;
  const std::vector<KeyValue> labels_;
};

}  // namespace

std::span<const BasicOptionRow<ParcaOptions>> ParcaOptionTable() { return kParcaTable; }

absl::StatusOr<std::shared_ptr<const HttpBackend>> MakeParcaBackend(const ParcaOptions& options) {
  if (absl::Status status = internal::CheckRows(ParcaOptionTable(), options); !status.ok())
    return status;
  absl::StatusOr<HttpEndpoint> endpoint = internal::EndpointOf(
      "parca.url (STROBE_PARCA_URL)", options.url->Reveal(), "/api/profiles/writeraw");
  if (!endpoint.ok()) return endpoint.status();
  internal::AddBearer(*endpoint, *options.token);
  absl::StatusOr<std::vector<KeyValue>> labels = internal::ParsePairs(*options.labels, '=');
  if (!labels.ok()) return labels.status();
  return std::make_shared<const ParcaBackend>(*std::move(endpoint), *options.job,
                                              *std::move(labels));
}

ParcaExporter::ParcaExporter(ParcaOptions given, HttpTools tools)
    : HttpExporter([&] {
        const ParcaOptions options =
            internal::WithEnvironment(std::move(given), ParcaOptionTable());
        return HttpExporter(MakeParcaBackend(options), options.http, std::move(tools));
      }()) {}

}  // namespace strobe
