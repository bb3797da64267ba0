// ManualHttpServer: answers HTTP requests in memory, as a test tells it, and keeps them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/export/exporter.h"
#include "strobe/export/http_client.h"

namespace strobe::testing {

// Thread-safe. Must outlive its clients.
class ManualHttpServer {
 public:
  // What happens to a request. An error: it does not arrive.
  using Answer = std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)>;

  // The answer to all requests from now on. Without one: 200.
  void SetAnswer(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void SetStatus(int status, const std::string& retry_after = "") {
    SetAnswer([=](const HttpRequest& /*request*/) {
      return HttpResponse{
          .status = status, .content_type = "application/json", .retry_after = retry_after};
    });
  }
  // No request arrives.
  void SetUnreachable() {
    SetAnswer([](const HttpRequest& /*request*/) -> absl::StatusOr<HttpResponse> {
      return absl::UnavailableError("connection refused");
    });
  }

  // The requests that were answered by 2xx, and all that were tried.
  [[nodiscard]] std::vector<HttpRequest> Accepted() const {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }
  [[nodiscard]] std::size_t tries() const {
    const std::lock_guard lock(mutex_);
    return tries_;
  }

  absl::StatusOr<HttpResponse> Receive(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    ++tries_;
    absl::StatusOr<HttpResponse> response =
        answer_ ? answer_(request)
                : HttpResponse{.status = 200, .content_type = "application/json"};
    if (response.ok() && response->status >= 200 && response->status < 300)
      accepted_.push_back(request);
    return response;
  }

 private:
  mutable std::mutex mutex_;
  Answer answer_;
  std::vector<HttpRequest> accepted_;
  std::size_t tries_ = 0;
};

class ManualHttpClient final : public HttpClient {
 public:
  explicit ManualHttpClient(ManualHttpServer& server) : server_(server) {}
  absl::StatusOr<HttpResponse> Post(const HttpRequest& request,
                                    const ExportDeadline& deadline) override {
    if (deadline.HasPassed()) return absl::DeadlineExceededError("no answer in time");
    return server_.Receive(request);
  }

 private:
  ManualHttpServer& server_;
};

}  // namespace strobe::testing
