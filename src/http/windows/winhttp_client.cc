// The HTTP client on WinHTTP, which every Windows has. Asynchronous, because only such a request
// can be left at any time.
#include <windows.h>
// These need windows.h before them.
#include <winhttp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "../../platform/windows/utf8.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "strobe/http/native_http.h"

namespace strobe {
namespace {

using internal::Utf8FromWide;
using internal::WideFromUtf8;

struct HandleCloser {
  void operator()(void* handle) const { WinHttpCloseHandle(handle); }
};
using Handle = std::unique_ptr<void, HandleCloser>;

// Why a certificate is not accepted. WinHTTP tells flags before it fails, or fails with the error
// of one reason.
struct CertificateFault {
  DWORD flag;
  DWORD error;
  std::string_view text;
};
constexpr std::array kCertificateFaults = {
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_INVALID_CA, ERROR_WINHTTP_SECURE_INVALID_CA,
                     "its issuer is not trusted"},
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_CERT_CN_INVALID,
                     ERROR_WINHTTP_SECURE_CERT_CN_INVALID, "it is for another host"},
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_CERT_DATE_INVALID,
                     ERROR_WINHTTP_SECURE_CERT_DATE_INVALID, "it has expired, or is not valid yet"},
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_CERT_REVOKED, ERROR_WINHTTP_SECURE_CERT_REVOKED,
                     "it has been revoked"},
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_CERT_REV_FAILED,
                     ERROR_WINHTTP_SECURE_CERT_REV_FAILED, "its revocation cannot be checked"},
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_CERT_WRONG_USAGE,
                     ERROR_WINHTTP_SECURE_CERT_WRONG_USAGE, "it is not for servers"},
    CertificateFault{WINHTTP_CALLBACK_STATUS_FLAG_INVALID_CERT, ERROR_WINHTTP_SECURE_INVALID_CERT,
                     "it is invalid"},
};

// The reasons among `flags` and that of `error`; empty if there is none.
std::string CertificateFaults(DWORD flags, DWORD error) {
  std::string text;
  for (const CertificateFault& fault : kCertificateFaults) {
    if ((flags & fault.flag) == 0 && error != fault.error) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", std::string(fault.text));
  }
  return text;
}

absl::Status ErrorOf(DWORD code, DWORD certificate_flags = 0) {
  const auto text = [&](std::string_view what) {
    return absl::StrCat(std::string(what), " (WinHTTP ", code, ")");
  };
  const std::string faults = CertificateFaults(certificate_flags, code);
  if (!faults.empty() || code == ERROR_WINHTTP_SECURE_FAILURE) {
    return absl::FailedPreconditionError(text(absl::StrCat(
        "the server's certificate is not accepted", faults.empty() ? "" : ": ", faults)));
  }
  switch (code) {
    case ERROR_WINHTTP_INVALID_URL:
    case ERROR_WINHTTP_UNRECOGNIZED_SCHEME: return absl::InvalidArgumentError(text("not a URL"));
    // Also a handshake that broke, so it may pass. Wine fails so for each certificate that it does
    // not accept, and tells no more.
    case ERROR_WINHTTP_SECURE_CHANNEL_ERROR:
      return absl::UnavailableError(
          text("no secure connection: the server's certificate is not accepted, or the handshake "
               "failed"));
    case ERROR_WINHTTP_TIMEOUT: return absl::DeadlineExceededError(text("no answer in time"));
    case ERROR_WINHTTP_NAME_NOT_RESOLVED: return absl::UnavailableError(text("no such host"));
    case ERROR_WINHTTP_CANNOT_CONNECT: return absl::UnavailableError(text("no connection"));
    default: return absl::UnavailableError(text("the connection broke, or the answer is broken"));
  }
}
absl::Status LastError() { return ErrorOf(GetLastError()); }

// What WinHTTP's threads tell of a request, and the memory that it uses. It lives until WinHTTP has
// let go of the request's handle, which may be after the call of Post.
class Transfer {
 public:
  static constexpr DWORD kFailed = WINHTTP_CALLBACK_STATUS_REQUEST_ERROR;

  explicit Transfer(std::string body) : body_(std::move(body)) {}

  // The handle that is given this context owns a reference. `context` points to a shared_ptr.
  static void CALLBACK Tell(HINTERNET /*handle*/, DWORD_PTR context, DWORD status, void* info,
                            DWORD bytes) {
    auto* const transfer = reinterpret_cast<std::shared_ptr<Transfer>*>(context);
    if (transfer == nullptr) return;
    switch (status) {
      case WINHTTP_CALLBACK_STATUS_HANDLE_CLOSING: delete transfer; return;
      case WINHTTP_CALLBACK_STATUS_SENDREQUEST_COMPLETE:
      case WINHTTP_CALLBACK_STATUS_HEADERS_AVAILABLE: (*transfer)->Note(status, 0); return;
      case WINHTTP_CALLBACK_STATUS_READ_COMPLETE: (*transfer)->Note(status, bytes); return;
      case WINHTTP_CALLBACK_STATUS_SECURE_FAILURE:
        (*transfer)->NoteCertificate(*static_cast<const DWORD*>(info));
        return;
      case kFailed:
        (*transfer)->Note(kFailed, static_cast<WINHTTP_ASYNC_RESULT*>(info)->dwError);
        return;
      default: return;
    }
  }

  // Waits until what the last call has begun is complete, or has failed.
  absl::Status Await(DWORD status, const ExportDeadline& deadline) {
    std::unique_lock lock(mutex_);
    while (status_ != status && status_ != kFailed) {
      if (deadline.HasPassed()) return ErrorOf(ERROR_WINHTTP_TIMEOUT);
      changed_.wait_until(lock, std::min(deadline.time(), std::chrono::steady_clock::now() +
                                                              ExportDeadline::kMaxStepMs));
    }
    const bool has_failed = status_ == kFailed;
    status_ = 0;
    return has_failed ? ErrorOf(value_, certificate_flags_) : absl::OkStatus();
  }
  // Of the last read that is complete.
  [[nodiscard]] std::string_view part() const { return {part_.data(), value_}; }

  std::string& body() { return body_; }
  std::array<char, 8192>& buffer() { return part_; }

 private:
  void Note(DWORD status, DWORD value) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    value_ = value;
    changed_.notify_all();
  }

  // Comes before the failure.
  void NoteCertificate(DWORD flags) {
    const std::lock_guard lock(mutex_);
    certificate_flags_ = flags;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  DWORD status_ = 0;
  DWORD value_ = 0;  // the bytes that were read, or the error
  DWORD certificate_flags_ = 0;
  std::string body_;
  std::array<char, 8192> part_{};
};

struct Url {
  std::wstring host;
  std::wstring path;  // and the query
  INTERNET_PORT port = 0;
  bool is_secure = false;
  std::wstring user;
  std::wstring password;
};

absl::StatusOr<Url> ParseUrl(const std::string& text) {
  const std::wstring wide = WideFromUtf8(text);
  URL_COMPONENTS parts = {};
  parts.dwStructSize = sizeof(parts);
  // Not 0: the parts are wanted, as places in the text.
  parts.dwHostNameLength = parts.dwUrlPathLength = parts.dwExtraInfoLength = 1;
  parts.dwUserNameLength = parts.dwPasswordLength = 1;
  if (wide.empty() || WinHttpCrackUrl(wide.c_str(), 0, 0, &parts) == 0 ||
      parts.dwHostNameLength == 0)
    return ErrorOf(ERROR_WINHTTP_INVALID_URL);
  const auto part = [](const wchar_t* begin, DWORD size) {
    return begin == nullptr ? std::wstring() : std::wstring(begin, size);
  };
  return Url{.host = part(parts.lpszHostName, parts.dwHostNameLength),
             .path = part(parts.lpszUrlPath, parts.dwUrlPathLength) +
                     part(parts.lpszExtraInfo, parts.dwExtraInfoLength),
             .port = parts.nPort,
             .is_secure = parts.nScheme == INTERNET_SCHEME_HTTPS,
             .user = part(parts.lpszUserName, parts.dwUserNameLength),
             .password = part(parts.lpszPassword, parts.dwPasswordLength)};
}

bool SetNumber(void* handle, DWORD option, DWORD value) {
  return WinHttpSetOption(handle, option, &value, sizeof(value)) != 0;
}
bool SetText(void* handle, DWORD option, std::wstring& value) {
  return WinHttpSetOption(handle, option, value.data(), static_cast<DWORD>(value.size())) != 0;
}

// A header of the answer; empty if it has none.
std::string HeaderOf(void* request, DWORD header) {
  std::array<wchar_t, 512> text{};
  DWORD bytes = sizeof(text);
  if (WinHttpQueryHeaders(request, header, WINHTTP_HEADER_NAME_BY_INDEX, text.data(), &bytes,
                          WINHTTP_NO_HEADER_INDEX) == 0)
    return "";
  return Utf8FromWide(std::wstring_view(text.data(), bytes / sizeof(wchar_t)));
}

class WinHttpClient final : public HttpClient {
 public:
  explicit WinHttpClient(HttpClientOptions options) : options_(std::move(options)) {}

  absl::StatusOr<HttpResponse> Post(const HttpRequest& request,
                                    const ExportDeadline& deadline) override;

 private:
  // A request's handles. Closed in the reverse order.
  struct Opened {
    Handle session;
    Handle connection;
    Handle request;
  };
  absl::StatusOr<Opened> Open(const HttpRequest& request) const;
  static absl::StatusOr<HttpResponse> Read(void* request, Transfer& transfer,
                                           const ExportDeadline& deadline);

  const HttpClientOptions options_;
};

absl::StatusOr<WinHttpClient::Opened> WinHttpClient::Open(const HttpRequest& request) const {
  absl::StatusOr<Url> url = ParseUrl(request.url);
  if (!url.ok()) return url.status();
  std::wstring proxy;
  Url proxy_url;
  if (!options_.proxy.empty()) {
    absl::StatusOr<Url> parsed = ParseUrl(options_.proxy);
    if (!parsed.ok()) return absl::InvalidArgumentError("the proxy is not a URL");
    proxy_url = *std::move(parsed);
    proxy = proxy_url.host + L":" + std::to_wstring(proxy_url.port);
  }
  Opened opened;
  opened.session.reset(WinHttpOpen(
      nullptr, proxy.empty() ? WINHTTP_ACCESS_TYPE_NO_PROXY : WINHTTP_ACCESS_TYPE_NAMED_PROXY,
      proxy.empty() ? WINHTTP_NO_PROXY_NAME : proxy.c_str(), WINHTTP_NO_PROXY_BYPASS,
      WINHTTP_FLAG_ASYNC));
  if (opened.session == nullptr) return LastError();
  // The deadline ends each wait.
  WinHttpSetTimeouts(opened.session.get(), 0, 0, 0, 0);
  opened.connection.reset(WinHttpConnect(opened.session.get(), url->host.c_str(), url->port, 0));
  if (opened.connection == nullptr) return LastError();
  opened.request.reset(WinHttpOpenRequest(
      opened.connection.get(), L"POST", url->path.empty() ? L"/" : url->path.c_str(), nullptr,
      WINHTTP_NO_REFERER, WINHTTP_DEFAULT_ACCEPT_TYPES,
      WINHTTP_FLAG_ESCAPE_DISABLE | (url->is_secure ? WINHTTP_FLAG_SECURE : 0)));
  void* const handle = opened.request.get();
  if (handle == nullptr) return LastError();
  SetNumber(handle, WINHTTP_OPTION_DISABLE_FEATURE,
            WINHTTP_DISABLE_COOKIES | WINHTTP_DISABLE_REDIRECTS | WINHTTP_DISABLE_AUTHENTICATION |
                WINHTTP_DISABLE_KEEP_ALIVE);
  if (!proxy_url.user.empty()) {
    SetText(handle, WINHTTP_OPTION_PROXY_USERNAME, proxy_url.user);
    SetText(handle, WINHTTP_OPTION_PROXY_PASSWORD, proxy_url.password);
  }
  for (const HttpHeader& header : request.headers) {
    const std::wstring line = WideFromUtf8(absl::StrCat(header.name, ": ", header.value));
    if (WinHttpAddRequestHeaders(handle, line.c_str(), static_cast<DWORD>(line.size()),
                                 WINHTTP_ADDREQ_FLAG_ADD) == 0)
      return absl::InvalidArgumentError(absl::StrCat("a header that is none: ", header.name));
  }
  return opened;
}

absl::StatusOr<HttpResponse> WinHttpClient::Read(void* request, Transfer& transfer,
                                                 const ExportDeadline& deadline) {
  HttpResponse response;
  DWORD status = 0;
  DWORD status_bytes = sizeof(status);
  if (WinHttpQueryHeaders(request, WINHTTP_QUERY_STATUS_CODE | WINHTTP_QUERY_FLAG_NUMBER,
                          WINHTTP_HEADER_NAME_BY_INDEX, &status, &status_bytes,
                          WINHTTP_NO_HEADER_INDEX) == 0)
    return LastError();
  constexpr DWORD kLeastStatus = 100;
  if (status < kLeastStatus) return absl::UnavailableError("the answer has no status");
  response.status = static_cast<int>(status);
  response.content_type = HeaderOf(request, WINHTTP_QUERY_CONTENT_TYPE);
  response.retry_after = HeaderOf(request, WINHTTP_QUERY_RETRY_AFTER);
  std::uint64_t expected_bytes = 0;
  const std::string length = HeaderOf(request, WINHTTP_QUERY_CONTENT_LENGTH);
  // These have no body, whatever their heads say.
  const bool has_body = status != HTTP_STATUS_NO_CONTENT && status != HTTP_STATUS_NOT_MODIFIED;
  if (has_body) static_cast<void>(absl::SimpleAtoi(length, &expected_bytes));
  while (response.body.size() < kMaxHttpBodyBytes) {
    const std::size_t room = kMaxHttpBodyBytes - response.body.size();
    const auto bytes = static_cast<DWORD>(std::min(room, transfer.buffer().size()));
    if (WinHttpReadData(request, transfer.buffer().data(), bytes, nullptr) == 0) return LastError();
    absl::Status done = transfer.Await(WINHTTP_CALLBACK_STATUS_READ_COMPLETE, deadline);
    if (!done.ok()) return done;
    if (transfer.part().empty()) {
      // WinHTTP takes the connection's end for that of the body.
      if (response.body.size() < expected_bytes)
        return absl::UnavailableError("the answer ends within its body");
      break;
    }
    response.body.append(transfer.part());
  }
  return response;
}

absl::StatusOr<HttpResponse> WinHttpClient::Post(const HttpRequest& request,
                                                 const ExportDeadline& deadline) {
  if (!request.unix_socket.empty())
    return absl::InvalidArgumentError("WinHTTP connects to no unix socket");
  // WinHTTP has no other store than the system's.
  if (!options_.ca_file.empty())
    return absl::FailedPreconditionError("WinHTTP takes no file of certificates");
  absl::StatusOr<Opened> opened = Open(request);
  if (!opened.ok()) return opened.status();
  void* const handle = opened->request.get();
  const auto transfer = std::make_shared<Transfer>(request.body);
  auto reference = std::make_unique<std::shared_ptr<Transfer>>(transfer);
  auto context = reinterpret_cast<DWORD_PTR>(reference.get());
  if (WinHttpSetStatusCallback(handle, &Transfer::Tell, WINHTTP_CALLBACK_FLAG_ALL_NOTIFICATIONS,
                               0) == WINHTTP_INVALID_STATUS_CALLBACK ||
      WinHttpSetOption(handle, WINHTTP_OPTION_CONTEXT_VALUE, &context, sizeof(context)) == 0)
    return LastError();
  static_cast<void>(reference.release());  // the handle's end deletes it
  const auto bytes = static_cast<DWORD>(transfer->body().size());
  if (WinHttpSendRequest(handle, WINHTTP_NO_ADDITIONAL_HEADERS, 0, transfer->body().data(), bytes,
                         bytes, context) == 0)
    return LastError();
  absl::Status done = transfer->Await(WINHTTP_CALLBACK_STATUS_SENDREQUEST_COMPLETE, deadline);
  if (!done.ok()) return done;
  if (WinHttpReceiveResponse(handle, nullptr) == 0) return LastError();
  done = transfer->Await(WINHTTP_CALLBACK_STATUS_HEADERS_AVAILABLE, deadline);
  if (!done.ok()) return done;
  return Read(handle, *transfer, deadline);
}

}  // namespace

std::unique_ptr<HttpClient> MakeNativeHttpClient(const HttpClientOptions& options) {
  return std::make_unique<WinHttpClient>(options);
}

// WinHTTP needs no initialisation, and reads no variable of the environment.
void internal::InitializeNativeHttp() {}

}  // namespace strobe
