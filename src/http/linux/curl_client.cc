// The HTTP client on libcurl. One transfer at a time, driven by the multi interface, because only
// that can be left at any time.
#include <curl/curl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/http/native_http.h"
#include "strobe/platform/linux/own_files.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

struct EasyCloser {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiCloser {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListCloser {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyCloser>;
using Multi = std::unique_ptr<CURLM, MultiCloser>;
using List = std::unique_ptr<curl_slist, ListCloser>;

// The answer while it arrives.
struct Arriving {
  HttpResponse response;
  bool is_cut = false;         // the body has more than kMaxHttpBodyBytes
  bool has_head = false;       // the head is whole: libcurl takes one that is cut, too
  std::size_t head_bytes = 0;  // of interim answers and of trailers, too
};

std::size_t TakeBody(char* data, std::size_t size, std::size_t count, void* context) {
  Arriving& arriving = *static_cast<Arriving*>(context);
  const std::size_t bytes = size * count;
  const std::size_t room = kMaxHttpBodyBytes - arriving.response.body.size();
  arriving.response.body.append(data, std::min(bytes, room));
  arriving.is_cut = bytes > room;
  return arriving.is_cut ? 0 : bytes;  // 0 ends the transfer
}

std::size_t TakeHeader(char* data, std::size_t size, std::size_t count, void* context) {
  constexpr std::string_view kRetryAfter = "retry-after:";
  Arriving& arriving = *static_cast<Arriving*>(context);
  const absl::string_view line(data, size * count);
  arriving.head_bytes += line.size();
  if (arriving.head_bytes > kMaxHttpHeadBytes) return 0;  // ends the transfer
  // A status line: the headers before it were those of a "100 Continue".
  if (absl::StartsWith(line, "HTTP/")) arriving.response.retry_after.clear();
  arriving.has_head = absl::StripAsciiWhitespace(line).empty();
  if (absl::StartsWithIgnoreCase(line, absl::string_view(kRetryAfter.data(), kRetryAfter.size()))) {
    arriving.response.retry_after =
        std::string(absl::StripAsciiWhitespace(line.substr(kRetryAfter.size())));
  }
  return size * count;
}

// Where the thread has no files of its own, an exec at least does not hand the socket on.
curl_socket_t OpenSocket(void* /*context*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  const int number = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  return number < 0 ? CURL_SOCKET_BAD : number;
}
// There a fork's child may have a copy, which would keep the connection open.
int CloseSocket(void* /*context*/, curl_socket_t number) {
  shutdown(number, SHUT_RDWR);
  return close(number);
}

absl::StatusCode CodeOf(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT: return absl::StatusCode::kInvalidArgument;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR: return absl::StatusCode::kFailedPrecondition;
    case CURLE_OPERATION_TIMEDOUT: return absl::StatusCode::kDeadlineExceeded;
    default: return absl::StatusCode::kUnavailable;
  }
}

// "Name: value" for each header.
std::vector<std::string> HeaderLines(const HttpRequest& request) {
  // Without these, libcurl waits for a "100 Continue", and says that the body is a form.
  std::vector<std::string> lines{"Expect:"};
  bool has_type = false;
  for (const HttpHeader& header : request.headers) {
    has_type = has_type || absl::EqualsIgnoreCase(header.name, "Content-Type");
    // libcurl sends a header without a value only if a semicolon ends its name.
    lines.push_back(header.value.empty() ? absl::StrCat(header.name, ";")
                                         : absl::StrCat(header.name, ": ", header.value));
  }
  if (!has_type) lines.emplace_back("Content-Type:");
  return lines;
}

// Runs the one transfer to its end, or to the deadline.
CURLcode Run(CURLM* multi, const ExportDeadline& deadline) {
  constexpr int kStepMs = static_cast<int>(ExportDeadline::kMaxStepMs.count());
  int running = 1;
  while (true) {
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
    if (running == 0) break;
    if (deadline.HasPassed()) return CURLE_OPERATION_TIMEDOUT;
    const auto left = deadline.time() - std::chrono::steady_clock::now();
    const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    curl_multi_poll(multi, nullptr, 0, static_cast<int>(std::clamp<long long>(left_ms, 1, kStepMs)),
                    nullptr);
  }
  int messages = 0;
  const CURLMsg* const message = curl_multi_info_read(multi, &messages);
  return message != nullptr && message->msg == CURLMSG_DONE ? message->data.result
                                                            : CURLE_FAILED_INIT;
}

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(HttpClientOptions options) : options_(std::move(options)) {
    internal::InitializeNativeHttp();
  }

  absl::StatusOr<HttpResponse> Post(const HttpRequest& request,
                                    const ExportDeadline& deadline) override;

 private:
  absl::StatusOr<HttpResponse> PostHere(const HttpRequest& request, const ExportDeadline& deadline);
  void SetRequest(CURL* easy, const HttpRequest& request, curl_slist* headers) const;
  static void SetConnection(CURL* easy);

  const HttpClientOptions options_;
};

void CurlClient::SetRequest(CURL* easy, const HttpRequest& request, curl_slist* headers) const {
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  if (!request.unix_socket.empty())
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request.unix_socket.c_str());
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  // Set in any case: otherwise libcurl would read them from the environment, here and now.
  curl_easy_setopt(easy, CURLOPT_PROXY, request.unix_socket.empty() ? options_.proxy.c_str() : "");
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
}

void CurlClient::SetConnection(CURL* easy) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &CloseSocket);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name server that is silent must not hold the caller beyond the deadline: the resolver's
  // thread is left to its end. An older libcurl waits for it.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#endif
}

// On a thread with files of its own: libcurl and the resolver keep numbers of sockets and pipes,
// which the program may close or replace at any time.
absl::StatusOr<HttpResponse> CurlClient::Post(const HttpRequest& request,
                                              const ExportDeadline& deadline) {
  absl::StatusOr<HttpResponse> response = absl::ResourceExhaustedError("no memory for a request");
  NativePlatform::OwnThread thread = NativePlatform::RunOnOwnThread("strobe-http", [&] {
    internal::TakeOwnFiles();
    static_cast<void>(internal::HasMemoryFor([&] { response = PostHere(request, deadline); }));
  });
  if (!thread.IsRunning()) return PostHere(request, deadline);
  thread.Join();
  return response;
}

absl::StatusOr<HttpResponse> CurlClient::PostHere(const HttpRequest& request,
                                                  const ExportDeadline& deadline) {
  // They outlive the handle that uses them.
  List headers;
  Arriving arriving;
  std::array<char, CURL_ERROR_SIZE> error{};
  const Easy easy(curl_easy_init());
  const Multi multi(curl_multi_init());
  if (easy == nullptr || multi == nullptr)
    return absl::ResourceExhaustedError("libcurl has no memory");
  for (const std::string& line : HeaderLines(request))
    headers.reset(curl_slist_append(headers.release(), line.c_str()));
  SetRequest(easy.get(), request, headers.get());
  SetConnection(easy.get());
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, error.data());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &arriving);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, &TakeHeader);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &arriving);
  curl_multi_add_handle(multi.get(), easy.get());
  const CURLcode code = Run(multi.get(), deadline);
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  const char* content_type = nullptr;
  curl_easy_getinfo(easy.get(), CURLINFO_CONTENT_TYPE, &content_type);
  if (content_type != nullptr) arriving.response.content_type = content_type;
  curl_multi_remove_handle(multi.get(), easy.get());
  if (arriving.head_bytes > kMaxHttpHeadBytes)
    return absl::UnavailableError("the answer's head and trailers are too long");
  if (code != CURLE_OK && !arriving.is_cut) {
    return absl::Status(CodeOf(code), error[0] != '\0' ? absl::string_view(error.data())
                                                       : curl_easy_strerror(code));
  }
  if (!arriving.has_head) return absl::UnavailableError("the answer ends within its head");
  arriving.response.status = static_cast<int>(status);
  return std::move(arriving.response);
}

}  // namespace

std::unique_ptr<HttpClient> MakeNativeHttpClient(const HttpClientOptions& options) {
  return std::make_unique<CurlClient>(options);
}

void internal::InitializeNativeHttp() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace strobe
