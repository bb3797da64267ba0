#include "strobe/http/post_exporter.h"

#include <array>
#include <utility>

#include "backend_parts.h"

namespace strobe {
namespace {

using internal::FieldRow;
using internal::kEqualPairs;
using internal::kUrl;

constexpr std::array kPostTable = {
    FieldRow<PostOptions, &PostOptions::url, kUrl>("STROBE_POST_URL", "post.url",
                                                   "Where each profile is posted to."),
    FieldRow<PostOptions, &PostOptions::headers, kEqualPairs>(
        "STROBE_POST_HEADERS", "post.headers", "Headers of each request, encoded as in URLs."),
};

class PostBackend final : public HttpBackend {
 public:
  explicit PostBackend(HttpEndpoint endpoint) : endpoint_(std::move(endpoint)) {}
  [[nodiscard]] std::string_view name() const override { return "post"; }
  [[nodiscard]] const HttpEndpoint& endpoint() const override { return endpoint_; }
  [[nodiscard]] bool TakesProfiles() const override { return false; }
  [[nodiscard]] absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const override {
    return std::vector<HttpMessage>{
        {.headers = {{.name = "Content-Type", .value = std::string(request.content_type)}},
         .body = std::string(request.bytes)}};
  }

 private:
  const HttpEndpoint endpoint_;
};

}  // namespace

std::span<const BasicOptionRow<PostOptions>> PostOptionTable() { return kPostTable; }

absl::StatusOr<std::shared_ptr<const HttpBackend>> MakePostBackend(const PostOptions& options) {
  absl::StatusOr<HttpEndpoint> endpoint =
      internal::EndpointOf("post.url (STROBE_POST_URL)", options.url->Reveal(), "");
  if (!endpoint.ok()) return endpoint.status();
  const absl::Status status =
      internal::AddHeaders(*endpoint, "post.headers (STROBE_POST_HEADERS)", *options.headers);
  if (!status.ok()) return status;
  return std::make_shared<const PostBackend>(*std::move(endpoint));
}

PostExporter::PostExporter(PostOptions given, HttpTools tools)
    : HttpExporter([&] {
        const PostOptions options = internal::WithEnvironment(std::move(given), PostOptionTable());
        return HttpExporter(MakePostBackend(options), options.http, std::move(tools));
      }()) {}

}  // namespace strobe
