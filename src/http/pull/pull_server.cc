#include "strobe/http/pull_server.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "linux/pull_listener.h"
#include "strobe/core/settings/option_rows.h"
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

}  // namespace

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
  auto listener = std::make_unique<internal::PullListener>(
      PullHandler(source_, formats_, options_, CommandLine()));
  absl::Status status = listener->Start(*options_.address, static_cast<int>(*options_.port));
  if (status.ok()) listener_ = std::move(listener);
  return status;
}

void PullServer::Stop() {
  if (listener_ != nullptr && !listener_->IsOfThisProcess()) static_cast<void>(listener_.release());
  listener_.reset();
}

std::string PullServer::url() const {
  if (listener_ == nullptr || !listener_->IsOfThisProcess()) return "";
  const std::string& address = *options_.address;
  const bool has_colons = address.find(':') != std::string::npos;  // of IPv6
  return absl::StrCat("http://", has_colons ? absl::StrCat("[", address, "]") : address, ":",
                      listener_->port());
}

}  // namespace strobe
