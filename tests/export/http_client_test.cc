#include "strobe/export/http_client.h"

#include <memory>

#include "gtest/gtest.h"

namespace strobe {
namespace {

class RefusingClient final : public HttpClient {
 public:
  absl::StatusOr<HttpResponse> Post(const HttpRequest& request,
                                    const ExportDeadline& /*deadline*/) override {
    return HttpResponse{.status = request.body.empty() ? 400 : 413};
  }
};

TEST(HttpClient, AnAnswerOfAnyStatusIsNoError) {
  const std::unique_ptr<HttpClient> client = std::make_unique<RefusingClient>();
  EXPECT_EQ(client->Post({}, {})->status, 400);
  EXPECT_EQ(client->Post({.body = "bytes"}, {})->status, 413);
}

}  // namespace
}  // namespace strobe
