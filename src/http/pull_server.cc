#include "strobe/http/pull_server.h"

#include <httplib.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/core/option_rows.h"
#include "strobe/platform/linux/own_ports.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

// The program's arguments, each with a NUL behind it where the system says so.
std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  while (text.ends_with('\0')) text.pop_back();
  return text.empty() ? NativePlatform::ProgramName() : text;
}

void Answer(const PullHandler& handler, const httplib::Request& request,
            httplib::Response& response) {
  PullRequest asked{.path = request.path,
                    .authorization = request.get_header_value("Authorization"),
                    .host = request.get_header_value("Host")};
  for (const auto& [name, value] : request.params) asked.query.emplace(name, value);
  PullResponse answer = handler.Handle(asked);
  response.status = answer.status;
  response.set_header("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.headers) response.set_header(name.c_str(), value);
  response.set_content(answer.body.data(), answer.body.size(), answer.content_type.c_str());
}

}  // namespace

namespace internal {

// The server of the library, and the thread that it runs on.
class PullListener {
 public:
  PullListener(PullSource source, std::vector<PullFormat> formats, const PullServerOptions& options)
      : handler_(std::move(source), std::move(formats), options, CommandLine()) {
    constexpr std::size_t kThreads = kMaxRecordings + 2;  // for what answers at once
    constexpr std::size_t kMaxBodyBytes = 4096;
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kMaxBodyBytes);
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(PullServer::kIdleSeconds);
    server_.set_write_timeout(PullServer::kIdleSeconds);
    server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      Answer(handler_, request, response);
    });
  }

  absl::Status Start(const std::string& address, int port) {
    port_ = port == 0 ? server_.bind_to_any_port(address)
                      : (server_.bind_to_port(address, port) ? port : -1);
    if (port_ <= 0)
      return absl::UnavailableError(absl::StrCat("cannot listen at ", address, ":", port));
    CloseSocketsInChild(static_cast<std::uint16_t>(port_));
    // The threads of the server's pool inherit this thread's mask, which blocks all signals.
    thread_ =
        NativePlatform::RunOnOwnThread("strobe-pull", [this] { server_.listen_after_bind(); });
    if (!thread_.IsRunning())
      return absl::ResourceExhaustedError("the system refuses another thread for the server");
    constexpr int kMaxStartMs = 5000;
    for (int ms = 0; ms < kMaxStartMs && !server_.is_running(); ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  }
  void Stop() {
    handler_.Cancel();
    server_.stop();
    thread_.Join();
    ForgetSocketsInChild(static_cast<std::uint16_t>(port_));
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  PullHandler handler_;
  httplib::Server server_;
  int port_ = -1;
  NativePlatform::OwnThread thread_;
};

}  // namespace internal

PullServer::PullServer(PullSource source, PullServerOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  internal::ApplyRows(PullServerOptionTable(), options_, &NativePlatform::EnvironmentVariable,
                      &NativePlatform::WriteLine);
}

PullServer::~PullServer() { Stop(); }

absl::Status PullServer::Start() {
  if (listener_ != nullptr) return absl::FailedPreconditionError("the server runs already");
  if (absl::Status status = internal::CheckRows(PullServerOptionTable(), options_); !status.ok())
    return status;
  auto listener = std::make_unique<internal::PullListener>(source_, formats_, options_);
  absl::Status status = listener->Start(*options_.address, static_cast<int>(*options_.port));
  if (status.ok()) listener_ = std::move(listener);
  return status;
}

void PullServer::Stop() {
  if (listener_ == nullptr) return;
  listener_->Stop();
  listener_.reset();
}

std::string PullServer::url() const {
  return listener_ == nullptr ? ""
                              : absl::StrCat("http://", *options_.address, ":", listener_->port());
}

}  // namespace strobe
