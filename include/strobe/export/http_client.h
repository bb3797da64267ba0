// The contract of an HTTP client: what the exporters that send profiles ask of a library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/export/exporter.h"

namespace strobe {

struct HttpHeader {
  std::string name;
  std::string value;
  bool is_secret = false;  // a key or a token: never in a log, a file or an error

  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

struct HttpRequest {
  std::string url = {};          // http:// or https://, without user and password
  std::string unix_socket = {};  // the path of a socket to connect to instead of the URL's host
  std::vector<HttpHeader> headers = {};
  std::string body = {};
};

// The first bytes of a body that are kept.
inline constexpr std::size_t kMaxHttpBodyBytes = 64 * 1024;
// An answer whose status lines, headers and trailers have more bytes is an error.
inline constexpr std::size_t kMaxHttpHeadBytes = 256 * 1024;

struct HttpResponse {
  int status = 0;
  std::string content_type = {};
  std::string retry_after = {};  // as the server wrote it
  std::string body = {};         // at most kMaxHttpBodyBytes

  friend bool operator==(const HttpResponse&, const HttpResponse&) = default;
};

// The servers that an HttpClient trusts, and its way to them.
struct HttpClientOptions {
  std::string ca_file = {};  // of PEM certificates; empty: the system's
  std::string proxy = {};    // a URL; may have a password; empty: none
};

// * Post(request, deadline) sends the request whole, and returns the server's final answer of any
//   status. It follows no redirect: the headers may hold a key. It accepts only a certificate
//   that is valid for the URL's host.
// * It returns by the deadline, which may come nearer during the call (see ExportDeadline).
// * An error means that the server may not have got the request: Unavailable (no connection, or one
//   that broke), DeadlineExceeded, FailedPrecondition (a certificate that is not accepted),
//   InvalidArgument (not a URL). Its message has neither a header's value nor the proxy's password.
// * Each call has a connection of its own, closed when it returns. A fork's child has no socket of
//   it. No signal is raised or handled.
// * What it reads of the environment, it reads in its constructor.
// Used by one thread at a time.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  [[nodiscard]] virtual absl::StatusOr<HttpResponse> Post(const HttpRequest& request,
                                                          const ExportDeadline& deadline) = 0;
};

}  // namespace strobe
