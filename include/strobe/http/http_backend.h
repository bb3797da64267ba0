// The contract of a backend: how a profile becomes HTTP requests, and what a server's answer means.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/export/exporter.h"
#include "strobe/export/http_client.h"

namespace strobe {

// Where a backend's requests go.
struct HttpEndpoint {
  std::string url = {};          // without user and password
  std::string unix_socket = {};  // see HttpRequest
  std::string file = {};         // of file:///path: requests are written to files, and none is sent
  std::vector<HttpHeader> headers = {};  // of every request; the only ones that may be secret
};

// The part of a request that depends on the profile. A spool keeps it on disk, so it has no secret.
struct HttpMessage {
  std::string query = {};                // behind the URL's "?", encoded; may be empty
  std::vector<HttpHeader> headers = {};  // Content-Type, for one
  std::string body = {};

  friend bool operator==(const HttpMessage&, const HttpMessage&) = default;
};

// What a server's answer, or its absence, means for a profile.
enum class Verdict : std::uint8_t {
  kDelivered,
  kRetry,    // the same request may succeed later
  kRefused,  // the server will never take this profile; it may take others
  kStop,     // the server takes no profile at all, until someone changes something: a wrong key, a
             // wrong address. Tries are rare from here on.
};

struct Judgement {
  Verdict verdict = Verdict::kRetry;
  absl::Status status;  // not OK unless delivered; says why, for people
};

// What most servers mean: 2xx is delivered; 400, 413, 415 and 422 refuse the profile; 408, 425, 429
// and 5xx may pass; all else, redirects too, is kStop.
Judgement JudgeByStatus(const HttpResponse& response);

// The time that a server wants to wait: Retry-After in seconds, or as an HTTP date. Empty if there
// is none, or if it cannot be read.
std::optional<std::chrono::seconds> RetryAfter(std::string_view header, std::int64_t unix_now_s);

// Control plane. Immutable: shared by the exporters of all sessions.
class HttpBackend {
 public:
  virtual ~HttpBackend() = default;
  // Names the spool's slots: "datadog".
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual const HttpEndpoint& endpoint() const = 0;
  // False if Build takes the bytes of the output's encoder, and not the profile.
  [[nodiscard]] virtual bool TakesProfiles() const { return true; }
  // At least one message. Pure: equal profiles give equal messages. An error refuses the profile.
  [[nodiscard]] virtual absl::StatusOr<std::vector<HttpMessage>> Build(
      const ExportRequest& request) const = 0;
  [[nodiscard]] virtual Judgement Judge(const HttpResponse& response) const {
    return JudgeByStatus(response);
  }
};

namespace internal {

// Messages as the bytes of a file, and back. Parse refuses all that Serialize does not write.
std::string SerializeMessages(const std::vector<HttpMessage>& messages);
std::optional<std::vector<HttpMessage>> ParseMessages(std::string_view bytes);

// The sum of a profile's samples, in the default value type.
std::int64_t AmountOf(const Profile& profile);

}  // namespace internal
}  // namespace strobe
