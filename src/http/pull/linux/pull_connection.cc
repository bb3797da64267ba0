#include "pull_connection.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/http/pull_server.h"

namespace strobe::internal {
namespace {

// A client that takes less of its answer is not waited for.
constexpr std::size_t kLeastBytesPerSecond = std::size_t{64} << 10;
// How long the client has to close the connection after its answer.
constexpr std::chrono::seconds kClosingTime{1};

constexpr int kLongHead = 431;

const char* ReasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

PullResponse Refusal(int status) {
  PullResponse response{.status = status, .body = absl::StrCat(ReasonOf(status), "\n")};
  if (status == 405) response.headers.emplace_back("Allow", "GET");
  return response;
}

std::string BytesOf(const PullResponse& response) {
  std::string bytes =
      absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                   "\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\nContent-Type: ",
                   response.content_type, "\r\nContent-Length: ", response.body.size(), "\r\n");
  for (const auto& [name, value] : response.headers)
    absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  absl::StrAppend(&bytes, "\r\n", response.body);
  return bytes;
}

bool MayComeLater() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

PullConnection::PullConnection(ServerSocket socket, Instant now)
    : socket_(std::move(socket)),
      deadline_(now + std::chrono::seconds(PullServer::kRequestSeconds)) {}

pollfd PullConnection::Wanted() const {
  short events = 0;
  if (step_ == Step::kReading || step_ == Step::kDiscarding) events = POLLIN;
  if (step_ == Step::kWriting) events = POLLOUT;
  // While the answer is made, an end of the connection must not wake anybody again and again.
  return {.fd = events == 0 ? -1 : socket_.get(), .events = events, .revents = 0};
}

std::optional<PullRequest> PullConnection::Proceed(Instant now) {
  const int number = socket_.get();
  if (number < 0) step_ = Step::kOver;  // the program has closed it
  std::optional<PullRequest> request;
  if (step_ == Step::kReading) request = Read(number, now);
  if (step_ == Step::kWriting) Write(number, now);
  if (step_ == Step::kDiscarding) Discard(number);
  return request;
}

std::optional<PullRequest> PullConnection::Read(int number, Instant now) {
  constexpr std::size_t kEndBytes = 2;  // of the head's, may be there already
  std::array<char, kMaxHeadBytes> bytes{};
  const ssize_t count = recv(number, bytes.data(), kMaxHeadBytes - head_.size(), MSG_DONTWAIT);
  if (count < 0 && MayComeLater()) return std::nullopt;
  if (count <= 0) {
    step_ = Step::kOver;
    return std::nullopt;
  }
  const std::size_t from = head_.size() - std::min(head_.size(), kEndBytes);
  head_.append(bytes.data(), static_cast<std::size_t>(count));
  if (HeadBytes(std::string_view(head_).substr(from)) == 0) {
    if (head_.size() == kMaxHeadBytes) Answer(Refusal(kLongHead), now);
    return std::nullopt;
  }
  RequestHead head = RequestHead::Of(head_);
  std::string().swap(head_);
  if (head.refusal != 0) {
    Answer(Refusal(head.refusal), now);
    return std::nullopt;
  }
  step_ = Step::kAnswering;
  return std::move(head.request);
}

void PullConnection::Answer(const PullResponse& response, Instant now) {
  std::string().swap(head_);
  answer_ = BytesOf(response);
  step_ = Step::kWriting;
  deadline_ = now + std::chrono::seconds(PullServer::kRequestSeconds +
                                         answer_.size() / kLeastBytesPerSecond);
}

void PullConnection::Write(int number, Instant now) {
  while (written_bytes_ < answer_.size()) {
    const ssize_t count = send(number, answer_.data() + written_bytes_,
                               answer_.size() - written_bytes_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) {
      if (!MayComeLater()) step_ = Step::kOver;
      return;
    }
    written_bytes_ += static_cast<std::size_t>(count);
  }
  std::string().swap(answer_);
  shutdown(number, SHUT_WR);
  step_ = Step::kDiscarding;
  deadline_ = now + kClosingTime;
}

void PullConnection::Discard(int number) {
  std::array<char, kMaxBodyBytes> bytes{};
  while (passed_bytes_ < kMaxBodyBytes) {
    const ssize_t count = recv(number, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && MayComeLater()) return;
    if (count <= 0) break;
    passed_bytes_ += static_cast<std::size_t>(count);
  }
  step_ = Step::kOver;
}

}  // namespace strobe::internal
