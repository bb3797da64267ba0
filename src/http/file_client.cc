#include "file_client.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// The request as it would be on the wire.
std::string TextOf(const HttpRequest& request) {
  const std::size_t host = request.url.find("://") + 3;
  const std::size_t path = std::min(request.url.find('/', host), request.url.size());
  std::string text =
      absl::StrCat("POST ", request.url.substr(path),
                   " HTTP/1.1\r\nHost: ", request.url.substr(host, path - host), "\r\n");
  for (const HttpHeader& header : request.headers) {
    absl::StrAppend(&text, header.name, ": ", header.is_secret ? "(secret)" : header.value, "\r\n");
  }
  absl::StrAppend(&text, "Content-Length: ", request.body.size(), "\r\n\r\n", request.body);
  return text;
}

class FileClient final : public HttpClient {
 public:
  FileClient(const ProfileDirectories& directories, const std::string& path)
      : directories_(directories),
        directory_(path.substr(0, path.rfind('/'))),
        name_(path.substr(path.rfind('/') + 1)) {}

  absl::StatusOr<HttpResponse> Post(const HttpRequest& request,
                                    const ExportDeadline& /*deadline*/) override {
    const auto directory = directories_.Open(directory_.empty() ? "/" : directory_);
    if (!directory.ok()) return directory.status();
    const auto file = (*directory)->Write(absl::StrCat(".", name_, ".tmp"), TextOf(request));
    if (!file.ok()) return file.status();
    absl::Status status = absl::AlreadyExistsError("");
    while (absl::IsAlreadyExists(status))
      status = (*file)->RenameTo(absl::StrCat(name_, ".", number_++));
    if (!status.ok()) return status;
    return HttpResponse{.status = 200, .content_type = "application/json"};
  }

 private:
  const ProfileDirectories& directories_;
  const std::string directory_;
  const std::string name_;
  std::size_t number_ = 0;
};

}  // namespace

std::unique_ptr<HttpClient> MakeFileClient(const ProfileDirectories& directories,
                                           const std::string& path) {
  return std::make_unique<FileClient>(directories, path);
}

}  // namespace strobe::internal
