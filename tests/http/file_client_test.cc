#include "../../src/http/file_client.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_directories.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

HttpRequest Request() {
  return {.url = "http://host:80/ingest?a=b",
          .headers = {{.name = "X-A", .value = "1"},
                      {.name = "Authorization", .value = "token", .is_secret = true}},
          .body = "bytes"};
}

class FileClientTest : public ::testing::Test {
 protected:
  absl::StatusOr<HttpResponse> Post(const HttpRequest& request = Request()) {
    return client_->Post(request, ExportDeadline());
  }
  testing::ManualDirectories directories_;
  std::unique_ptr<HttpClient> client_ = MakeFileClient(directories_, "/out/request");
};

TEST_F(FileClientTest, ARequestIsAsOnTheWireButForSecrets) {
  const auto response = Post();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(directories_.Read("/out/request.0"),
            "POST /ingest?a=b HTTP/1.1\r\nHost: host:80\r\nX-A: 1\r\nAuthorization: (secret)\r\n"
            "Content-Length: 5\r\n\r\nbytes");
}

TEST_F(FileClientTest, EachRequestHasAFileOfItsOwn) {
  ASSERT_TRUE(Post().ok());
  ASSERT_TRUE(Post().ok());
  EXPECT_THAT(directories_.Names("/out"), ElementsAre("request.0", "request.1"));
  client_ = MakeFileClient(directories_, "/out/request");
  ASSERT_TRUE(Post().ok());
  EXPECT_THAT(directories_.Names("/out"), ElementsAre("request.0", "request.1", "request.2"))
      << "those of an earlier program stay";
}

TEST_F(FileClientTest, AUrlMayHaveNoPath) {
  ASSERT_TRUE(Post({.url = "http://host"}).ok());
  EXPECT_EQ(directories_.Read("/out/request.0"),
            "POST  HTTP/1.1\r\nHost: host\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(FileClientTest, WhatCannotBeWrittenIsAnError) {
  directories_.With(
      [](auto& state) { state.write_status = absl::ResourceExhaustedError("the disk is full"); });
  EXPECT_EQ(Post().status().code(), absl::StatusCode::kResourceExhausted);
  directories_.With([](auto& state) {
    state.write_status = absl::OkStatus();
    state.rename_status = absl::PermissionDeniedError("no");
  });
  EXPECT_EQ(Post().status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace strobe::internal
