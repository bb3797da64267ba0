#include "strobe/http/pull_server.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "linux/pull_listener.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/platform/native.h"
#include "strobe/platform/program_place.h"

namespace strobe {
namespace {

// The program's arguments, or its name.
std::string ShownCommandLine() {
  std::string text = internal::ProgramCommandLine();
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
      PullHandler(source_, formats_, options_, ShownCommandLine()));
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
